"""The controlled event loop: a real asyncio loop whose every choice a scheduler answers.

Owns the iteration, virtual time and the ops that are parked; must not know searches, oracles or frameworks.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from harness.model.choice import ChoiceKind, ChoicePoint, Scheduler, option_label
from harness.model.errors import DeadlockError, TurnLimitError, UncontrolledError
from harness.model.outcome import Deviated, Event, Turn
from harness.model.rung import Rung
from harness.runtime import arrivals, external, jobs, lanes, their_clock
from harness.runtime.clock import READ_S, TICK_S
from harness.runtime.faults import Countdown
from harness.runtime.handles import Handle
from harness.runtime.identity import (
    FIRST_HASHES,
    SET_ORDERS,
    Birth,
    ControlledFuture,
    ControlledTask,
    make_task,
)
from harness.runtime.intake import collect_foreign
from harness.runtime.mould import Mould, OnDemand, empty
from harness.runtime.ops import ControlledTimer, Op, Pool, caller_site
from harness.runtime.settings import LoopSettings
from harness.runtime.threads import alive_threads, may_call_back, waits_for_a_thread
from harness.runtime.unhandled import MAX_UNHANDLED, describe_unhandled
from harness.runtime.waits import describe_waits

# Signals come in the order in which they were sent, and so are one source, as a thread is.
SIGNALS = -1

# Turns without a pause after which a read of the clock counts as polling.
POLLING_TURNS = 4096


_new = object.__new__

# Eager tasks are new in Python 3.12.
_EAGER_FACTORY = getattr(asyncio, "eager_task_factory", object())
_SLEEP_CALLBACK = asyncio.futures._set_result_unless_cancelled  # type: ignore[attr-defined]


class ControlledLoop(asyncio.SelectorEventLoop):
    """A selector event loop that decides every order that stock asyncio leaves open.

    scheduler: answers choice points; None means the default option everywhere.
    """

    # In the ``turns`` discipline only: callbacks that this iteration still runs, and who is told before each.
    batch_left = 0
    on_turn: Callable[[asyncio.Handle], None] | None = None
    waiting_outside = False  # true while it waits in real time, where slowness is no stall
    waited_s = 0.0  # real seconds that timers waited for foreign threads

    scheduler: Scheduler | None
    # Told of each lane or arrival that had no alternative; a scheduler that counts needs it.
    ran: Callable[[Any], None] | None
    heed: Callable[[Turn], None] | None
    # Answers by the number of options alone; None where somebody wants to know what an option is called.
    draw: Callable[[int], int] | None
    _debug: bool
    _thread_id: int | None

    trace = empty(list[Turn])
    journal = empty(list[Event])
    inversions = empty(list[tuple[str, str]])
    labels = empty(dict[int, tuple[str, str]])  # names of subjects and options, by choice, where there are any
    deviated = empty(list[Deviated])  # where the trace was at each choice that was not the default
    # invariant: siblings are counted as far as somebody asked for a path; see identity.ordinal_of
    ordinals = empty(list[int])
    siblings = empty(dict[Birth, int])
    held_timers = empty(list[ControlledTimer])
    early = empty(list[Op | ControlledTimer])
    scratch = empty(dict[str, Any])  # what adapters keep for the length of an execution
    passed_over = empty(dict[Any, int])  # how often each turn, in the discipline ``turns``
    released = empty(list[asyncio.Handle])
    interesting_tasks = empty(set[Any])
    graveyard = empty(list[Any])  # what a crash left behind
    memory = empty(dict[str, Any])  # what earlier executions of the session taught
    streams = empty(dict[str, Sequence[Any]])  # what consumers that stay saw so far, by the name of their choice
    pools = empty(dict[Any, Pool])  # one per executor that got a job
    real_jobs = empty(list[asyncio.Future[Any]])

    _asyncgens = empty(weakref.WeakSet[Any])
    _transports = empty(weakref.WeakValueDictionary[Any, Any])
    _selector = OnDemand(lambda loop: external.LazySelector(loop._gate))

    def __init__(
        self,
        scheduler: Scheduler | None = None,
        *,
        settings: LoopSettings | None = None,
        mould: Mould | None = None,
    ) -> None:
        """mould: of a loop that was made in the same process and does no real I/O."""
        if mould is None:
            self._make_fields(settings or LoopSettings())
        else:
            self.__dict__ = mould.fields()
        relaxed = settings is not None and settings.rung is lanes.RELAXED
        if settings is not None:
            self.settings = settings
            self.tracing = settings.tracing
            self._outside = settings.allow_real_io
            self._observed = settings.tracing or relaxed
        if scheduler is not None:
            self.scheduler = scheduler
            self.ran = getattr(scheduler, "ran", None)
            self.heed = getattr(scheduler, "heed", None)
            self.draw = None if self.tracing else getattr(scheduler, "draw", None)
            self.by_lanes = relaxed and self.settings.discipline == "indices"
            if order := self.choose("order", SET_ORDERS):
                self.set_order, self.first_hashes = SET_ORDERS[order], FIRST_HASHES[order]

    def _make_fields(self, settings: LoopSettings) -> None:
        """Set every field, ours and asyncio's, as it is when a loop begins."""
        self.settings = settings
        self.scheduler = self.ran = self.heed = self.draw = None
        self.by_lanes = False  # whether each turn is that of any lane
        self.tracing = settings.tracing
        self._outside = settings.allow_real_io
        self._observed = settings.tracing or settings.rung is Rung.RELAXED
        self.set_order, self.first_hashes = SET_ORDERS[0], FIRST_HASHES[0]
        self.births: list[Birth] = []
        self.hashed_futures = 0
        self.turn = 0
        self.offset_s = 0.0
        # Each answer, and of what kind the choice was.
        self.answers: list[int] = []
        self.asked: list[ChoiceKind] = []
        self.rung = Rung.EXACT
        self.parked: list[Op] = []  # invariant: sorted by age; only park() appends
        self.run_of_turns: tuple[int, Any] = lanes.NO_RUN  # turns that the last batch left behind, and the last of them
        self.passed_oldest = 0  # how often the turn that waits longest, in the discipline ``indices``
        self.countdowns: list[Countdown] = []  # of the runs to which something may happen
        self.busy = 0  # iterations since the loop was last quiet
        self.iteration = 0
        self.streak = 0  # ops delivered since the last timer
        self.passed_held = 0  # timers delivered while an op was held
        # Iteration, op ("" for a timer) and time of each delivery, in order, when somebody asks for it.
        self.deliveries: list[tuple[int, str, float]] | None = None
        self._reads = 0
        self._quiet_turn = 0
        self._read_turn = 0
        self.used_real_io = False
        self.foreign: deque[tuple[str, int, asyncio.Handle]] = deque()  # what called, from which thread
        self.followed_at: float | None = None  # real time up to which virtual time followed; None: it does not
        self.uncontrolled: UncontrolledError | None = None
        self.stalled = ""
        self.unhandled: list[str] | None = None  # errors that nobody handled; None: they are logged
        self._op_number = 0
        self.known_threads: frozenset[threading.Thread] | None = None
        self._ssock: Any = None
        self._csock: Any = None
        self._opening_pipe = False
        super().__init__(self._selector)
        if not settings.allow_real_io:
            del self._selector
        self._clock_resolution = TICK_S / 1000
        self.set_task_factory(make_task)  # type: ignore[arg-type]

    # -- choices ---------------------------------------------------------------------------------

    @property
    def choices(self) -> int:
        """How many choices were made."""
        return len(self.answers)

    def choose(self, kind: ChoiceKind, enabled: Any, *, subject: Any = None, interesting: bool = False) -> int:
        """Ask the scheduler; ``enabled`` has at least two options, default first."""
        if self.scheduler is None:
            return 0
        label = option = ""
        if self.draw is not None:
            value = self.draw(len(enabled))
        else:
            point = ChoicePoint(kind, enabled, len(self.answers), self.now(), subject, interesting)
            value = self.scheduler.choose(point)
            if value and self.tracing:
                option = option_label(point, value)
                self.deviated.append(Deviated(len(self.answers), len(self.trace), False))
        if value and subject is not None:
            label = str(subject)
        if label or option:
            self.labels[len(self.answers)] = label, option
        self.answers.append(value)
        self.asked.append(kind)
        return value

    def record(self, lane: str, what: str, where: str = "") -> None:
        """Append to the trace."""
        self.enter(self.entry(lane, what, where, number=self.turn, now_s=self.now()), len(self.trace))

    def enter(self, entry: Turn, position: int) -> None:
        """Put an entry into the trace, and show it to a scheduler that heeds what happens."""
        self.trace.insert(position, entry)
        if self.heed is not None:
            self.heed(entry)

    def entry(self, lane: str, what: str, where: str, *, number: int, now_s: float) -> Turn:
        """Return a trace entry."""
        return Turn(number, now_s, lane, what, where)

    def note(self, kind: str, subject: str, *, run: int, **data: Any) -> None:
        """Append a fact to the journal."""
        self.journal.append(Event(self.turn, self.now(), kind, run, subject, data))
        if self.tracing:
            self.record(f"run {run}", f"{kind} {subject}", caller_site(sys._getframe(1)))

    def next_op_number(self) -> int:
        """Return a number that grows with the age of ops."""
        self._op_number += 1
        return self._op_number

    def needs(self, rung: Rung) -> None:
        """Note that this schedule assumes ``rung``."""
        if rung > self.rung:
            self.rung = rung

    # -- time ------------------------------------------------------------------------------------

    def time(self) -> float:
        """Return virtual seconds: they move when a timer is delivered, with each turn, and with each read.

        No two reads are equal, as on a real clock: two deadlines are the same only if the program says so.
        """
        self._reads += 1
        return self.polled_time()

    def polled_time(self) -> float:
        """Return what a clock of the process shows that follows this loop.

        A program that reads it again and again while nothing happens waits for it to move, so it does.
        """
        without_pause = self.turn - self._quiet_turn
        if without_pause > POLLING_TURNS:
            # as often as the reader could have looked if the scheduler had let it
            self.offset_s += without_pause * TICK_S * max(1, self.turn - max(self._read_turn, self._quiet_turn))
            self._read_turn = self.turn
        return self.now()

    def now(self) -> float:
        """Return virtual seconds without moving them."""
        return self.offset_s + self.turn * TICK_S + self._reads * READ_S

    def note_quiet(self) -> None:
        """Note that the loop has nothing to run, so that nobody is polling."""
        self.busy = 0
        self._quiet_turn = self.turn

    def advance_to(self, when: float) -> None:
        """Move the clock to ``when``, never backwards."""
        offset = when - self.turn * TICK_S - self._reads * READ_S
        if offset > self.offset_s:
            self.offset_s = offset

    # -- parking ---------------------------------------------------------------------------------

    def park(self, name: str, *, interesting: bool = False) -> asyncio.Future[None]:
        """Park a point called ``name`` for the current task and return the future that it completes."""
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        self.park_op(
            Op(self, name, kind="point", deliver=arrivals.complete_point, target=future, interesting=interesting)
        )
        return future

    def park_op(self, op: Op) -> None:
        """Add ``op`` to what may be delivered next, and give it its rank."""
        self.parked.append(op)
        arrivals.give_rank(self, op)

    def forget_ranks(self) -> None:
        """Put what is held in turn again: what is left after an ending runs in default order."""
        for op in self.parked:
            op.rank = 0
        for timer in self.held_timers:
            timer.rank = 0
        self.held_timers.clear()

    def call_at(  # type: ignore[override]  # the stubs want a type variable tuple
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> ControlledTimer:
        """Schedule ``callback`` at virtual time ``when``, as stock asyncio does, and give it a rank."""
        if when is None:
            raise TypeError("when cannot be None")
        self._check_closed()  # type: ignore[attr-defined]
        if self.get_debug():
            self._check_thread()  # type: ignore[attr-defined]
            self._check_callback(callback, "call_at")  # type: ignore[attr-defined]
        timer = ControlledTimer(when, callback, args, self, context)
        if timer._source_traceback:
            del timer._source_traceback[-1]
        timer.number = self.next_op_number()
        timer.owner = asyncio.current_task(self) if asyncio._get_running_loop() is self else None
        timer.sleep = callback is _SLEEP_CALLBACK
        timer.delay = when - self.now()
        timer.rank = 0
        timer.early = False
        timer.interesting = timer.owner in self.interesting_tasks
        timer.site = caller_site(sys._getframe(1)) if self.tracing else ""
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True
        arrivals.give_rank(self, timer)
        return timer

    def run_in_executor(  # type: ignore[override]  # the stubs want a type variable tuple
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Park ``func`` as a job that runs inline when it is delivered."""
        if jobs.runs_for_real(self, executor):
            future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
            self.real_jobs.append(future)
            return future
        return jobs.park_job(self, executor, func, args)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # its signature
        """Wait for the worker threads.

        ``asyncio.Runner`` bounds this wait by five minutes (base_events, 3.12), which is a last resort and not an order
        that a program can meet: a held answer of a thread must not seem to take as long.
        """
        if sys.version_info < (3, 12):
            await super().shutdown_default_executor()
        elif timeout == asyncio.constants.THREAD_JOIN_TIMEOUT:
            await super().shutdown_default_executor(None)
        else:
            await super().shutdown_default_executor(timeout)

    # -- identity --------------------------------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future that hashes by number."""
        return ControlledFuture(loop=self)

    def create_task(self, coro: Any, **kwargs: Any) -> Any:
        """Return a task that hashes by number, unless the program set a task factory of its own."""
        factory = self._task_factory  # type: ignore[attr-defined]
        if factory is make_task or factory is None:
            if self._closed:
                self._check_closed()  # type: ignore[attr-defined]
            task = make_task(self, coro, **kwargs) if kwargs else make_task(self, coro)
            if self._debug:
                trace = getattr(task, "_source_traceback", None)
                if trace:
                    del trace[-1]
            return task
        if factory is _EAGER_FACTORY:
            self._check_closed()  # type: ignore[attr-defined]
            return ControlledTask(coro, loop=self, eager_start=True, **kwargs)
        return super().create_task(coro, **kwargs)

    def call_soon(  # type: ignore[override]  # the stubs want a type variable tuple
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Queue ``callback`` for the next iteration, as stock asyncio does, in fewer calls."""
        if self._closed or self._debug:
            handle: Any = super().call_soon(callback, *args, context=context)
            if handle._source_traceback:
                del handle._source_traceback[-1]  # it ends with who called, not with this method
            return handle  # type: ignore[no-any-return]
        # What the constructor of asyncio.Handle does, which costs as much as the rest of this method.
        handle = _new(Handle)
        handle._callback, handle._args, handle._loop = callback, args, self
        handle._context = contextvars.copy_context() if context is None else context
        handle._cancelled, handle._repr, handle._source_traceback = False, None, None
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle  # type: ignore[no-any-return]

    # -- the iteration ---------------------------------------------------------------------------

    def _run_once(self) -> None:
        if "time" in self.__dict__ and their_clock.run_once(self):
            return
        self.iteration += 1
        ready = self._ready  # type: ignore[attr-defined]
        if not ready or self.parked or self._scheduled or self.foreign or self._outside or self.countdowns:  # type: ignore[attr-defined]
            arrivals.arrive(self)
        limit = self.settings.turn_limit
        if limit and self.turn > limit:
            raise TurnLimitError(f"no end after {limit} turns\n{describe_waits(self)}")
        if self.by_lanes:
            lanes.run_lanes(self, ready)
            return
        if self._observed:
            lanes.run_batch(self)
            return
        if self._debug:
            lanes.run_batch_in_debug_mode(self)
            return
        # invariant: what a callback makes ready runs in the next iteration, as in stock asyncio.
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                self.turn += 1
                handle._run()
        handle = None  # a callback's error must not keep its own frame alive

    def quiet(self) -> None:
        """Act on a loop that has nothing to run, nothing parked and no timer: wait outside or give up."""
        if external.wait_when_quiet(self):
            return
        raise DeadlockError(f"deadlock: nothing can run any more\n{describe_waits(self)}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an error that nobody handled, within an execution; log it, as stock asyncio does, elsewhere."""
        if self.unhandled is None:
            super().default_exception_handler(context)
        elif len(self.unhandled) < MAX_UNHANDLED:
            self.unhandled.append(describe_unhandled(context))

    # -- the outside -----------------------------------------------------------------------------

    def call_soon_threadsafe(  # type: ignore[override]  # the stubs want a type variable tuple
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Schedule from any thread; a foreign thread's callback arrives when the loop is quiet."""
        owner = self._thread_id
        if owner is None or owner == threading.get_ident():
            handle = super().call_soon_threadsafe(callback, *args, context=context)
            if handle._source_traceback:  # type: ignore[attr-defined]
                del handle._source_traceback[-1]  # type: ignore[attr-defined]
            return handle
        self._check_closed()  # type: ignore[attr-defined]
        if self.get_debug():
            self._check_callback(callback, "call_soon_threadsafe")  # type: ignore[attr-defined]
        if self.settings.allow_real_io:
            self.used_real_io = True
        elif self.uncontrolled is None:
            self.uncontrolled = external.refuse(f"a callback from thread {threading.current_thread().name!r}")
        handle = asyncio.Handle(callback, args, self, context)
        if self._outside and waits_for_a_thread(owner) and not any(op.source for op in self.parked):
            # A turn that waits for threads, and not by the loop, may count on what they did before it goes on.
            while self.foreign:
                self._ready.append(self.foreign.popleft()[-1])  # type: ignore[attr-defined]
            self._ready.append(handle)  # type: ignore[attr-defined]
            return handle
        self.foreign.append(("thread", threading.get_ident(), handle))
        self._write_to_self()  # type: ignore[attr-defined]
        return handle

    def _add_callback_signalsafe(self, handle: asyncio.Handle) -> None:
        """Let the handler of a signal arrive as an op; the self-pipe brought it here."""
        self.foreign.append(("signal", SIGNALS, handle))

    def collect(self, events: Any = None) -> bool:
        """Park what came from outside as ops; return whether anything did."""
        return collect_foreign(self, events)

    def foreign_threads(self) -> list[threading.Thread]:
        """Return threads that were started since the loop first ran, that are alive and may call back.

        Where real I/O is allowed, a loop beside the main thread serves older threads too (anyio's blocking portal).
        """
        known = self.known_threads or frozenset()
        if self._outside and threading.current_thread() is not threading.main_thread():
            known = frozenset()
        return may_call_back(known, turn=self.turn)

    def run_forever(self) -> None:
        """Run until stopped."""
        if self.known_threads is None:
            self.known_threads = alive_threads()
        if self.used_real_io and not self.is_closed() and not self.is_running():
            arrivals.begin_run(self)
        super().run_forever()

    def _gate(self) -> None:
        if not self.settings.allow_real_io and not self._opening_pipe:
            raise external.refuse("real I/O")

    def open_pipe(self) -> None:
        """Create the self-pipe, which wakes a real ``select`` from other threads and from signals."""
        if self._ssock is None:
            self._opening_pipe = True
            super()._make_self_pipe()  # type: ignore[misc]
            self._opening_pipe = False

    def close(self) -> None:
        """Close the loop; one that never left the process has only its queues to clear."""
        used: Any = self._signal_handlers or self._default_executor  # type: ignore[attr-defined]
        if used or "_selector" in self.__dict__ or self._debug or self._thread_id is not None:
            super().close()
            return
        self._closed = self._executor_shutdown_called = True
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]

    def _make_self_pipe(self) -> None:
        """Make none until it is needed, unless it surely is: a pipe costs two file descriptors per loop."""
        if self.settings.allow_real_io:
            self.open_pipe()

    def _close_self_pipe(self) -> None:
        if self._ssock is not None:
            super()._close_self_pipe()  # type: ignore[misc]


external.guard_methods(ControlledLoop)

__all__ = ["ControlledLoop", "LoopSettings"]
