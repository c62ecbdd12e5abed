"""Stock asyncio with a clock and a world of its own: what arrives, and when, and nothing else.

Owns the driver; must not know the controlled loop. ``StockLoop`` is ``asyncio.SelectorEventLoop`` with its own
``_run_once``, ready queue, timer heap, tasks (which hash by number: the order of sets is open) and futures. It
replaces ``time()``, the selector, and the threads that run executor jobs.

An op completes inside ``select``, at the end of the queue. That is where it would be if a thread had called
``call_soon_threadsafe`` so late that its callback ran last in the iteration before; the driver refuses an op for
which this is too early. Where the loop would sleep, any number of idle iterations fit in, so any op may complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import selectors
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from harness.runtime.identity import SET_ORDERS, SetOrder
from soundness.programs import Program, Seen

WAKE_UP_S = 5e-5  # what a system takes to wake a process that sleeps in epoll
ITERATION_S = 2e-6
READ_S = 1e-8
MAX_ITERATIONS = 5000

# The thread of all jobs. It starts here, so that a controlled loop never takes it for one of a program's own.
THREAD = ThreadPoolExecutor(1)
THREAD.submit(int).result()


class Illegal(Exception):
    """Stock asyncio cannot do this."""


class Deadlock(Exception):
    """Stock asyncio would sleep for ever."""


@dataclass
class Script:
    """What arrives. deliveries: per iteration, the names of ops. clock: the time at the timers of an iteration.

    reads: what the program reads, in order.
    """

    deliveries: dict[int, list[str]] = field(default_factory=dict)
    clock: dict[int, float] = field(default_factory=dict)
    reads: list[float] = field(default_factory=list)
    set_order: SetOrder = SET_ORDERS[0]


class Point:
    """A future that something outside completes."""

    def __init__(self, loop: StockLoop, future: asyncio.Future[None]) -> None:
        self.future = future
        self.age = loop.next_age()
        self.possible = loop.iteration + 2

    @property
    def pending(self) -> bool:
        return not self.future.done()

    def complete(self, loop: StockLoop) -> None:
        if self.pending:
            self.future.set_result(None)


class Job:
    """A function on an executor thread: a worker begins it, it runs, its result comes back."""

    pending = True

    def __init__(self, pool: Pool, function: Callable[[], Any]) -> None:
        self.pool = pool
        self.age = pool.loop.next_age()
        self.function = function
        self.name = function.__name__
        self.result: Future[Any] = Future()
        self.outcome: tuple[Any, BaseException | None] | None = None
        self.asked: asyncio.Future[Any] | None = None  # what the program waits for
        self.possible = 0

    def complete(self, loop: StockLoop) -> None:
        """Run the function on a thread; its result is an op of its own."""
        self.outcome = loop.on_thread(self.function)
        self.possible = loop.iteration + 1
        if self.asked is not None and self.asked.cancelled():
            self.come_back(loop)

    def come_back(self, loop: StockLoop) -> None:
        """Let the result in, as a thread does: through call_soon_threadsafe."""
        assert self.outcome is not None
        value, error = self.outcome
        before = len(loop._ready)  # type: ignore[attr-defined]
        if error is None:
            self.result.set_result(value)
        else:
            self.result.set_exception(error)
        for _ in range(len(loop._ready) - before):  # type: ignore[attr-defined]
            loop._ready.pop()._run()  # type: ignore[attr-defined]
        self.pool.free_worker()


class Pool(ThreadPoolExecutor):
    """A thread pool whose workers begin jobs in order and run them when the driver says so."""

    def __init__(self, loop: StockLoop, workers: int) -> None:
        super().__init__(workers)
        self.loop = loop
        self.workers = workers
        self.waiting: list[Job] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert not args
        job = Job(self, function)
        self.loop.submitted = job
        self.waiting.append(job)
        self.begin()
        return job.result

    def begin(self) -> None:
        """Let free workers take jobs; one that was cancelled before that never runs."""
        while self.workers and self.waiting:
            job = self.waiting.pop(0)
            if job.result.set_running_or_notify_cancel():
                self.workers -= 1
                self.loop.outside[f"job:{job.name}"] = job

    def free_worker(self) -> None:
        self.workers += 1
        self.begin()


class Selector(selectors.BaseSelector):
    """A selector that asks the driver."""

    loop: StockLoop

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any: ...

    def unregister(self, fileobj: Any) -> Any: ...

    def get_map(self) -> Any:
        return {}

    def select(self, timeout: float | None = None) -> list[Any]:
        self.loop.poll(timeout)
        return []


def is_void(handle: Any) -> bool:
    """Return whether a handle does nothing: the state of a job is copied to a future that was cancelled."""
    name = getattr(handle._callback, "__qualname__", "")
    return name.endswith("_chain_future.<locals>._set_state") and handle._args[0].done()


class NumberedTask(asyncio.Task):  # type: ignore[type-arg]
    """A task with an address of our choice."""

    def __init__(self, coro: Any, *, loop: StockLoop, **kwargs: Any) -> None:
        self.hash_value = loop.set_order.hash_of(loop.tasks)
        loop.tasks += 1
        super().__init__(coro, loop=loop, **kwargs)

    def __hash__(self) -> int:
        return self.hash_value


class StockLoop(asyncio.SelectorEventLoop):
    """Stock asyncio; ``script`` says what arrives.

    Without a script nothing is slow: the oldest op arrives when the loop is idle, timers when there is none.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script = script
        self.iteration = 0
        self.ages = 0
        self.submitted: Job
        self.clock_s = 0.0
        self.tasks = 0
        self.set_order = SET_ORDERS[0] if script is None else script.set_order
        self.outside: dict[str, Point | Job] = {}
        self.reads: Iterator[float] = iter(() if script is None else script.reads)
        self.in_default = script is None
        selector = Selector()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = 1e-9
        self.set_default_executor(Pool(self, 32))
        self.set_task_factory(lambda loop, coro, **kwargs: NumberedTask(coro, loop=self, **kwargs))

    def _make_self_pipe(self) -> None:
        """Threads wake nobody here: the driver joins them."""

    def _close_self_pipe(self) -> None: ...

    def _write_to_self(self) -> None: ...

    def on_thread(self, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Run ``function`` on a real thread and wait for it."""
        done = THREAD.submit(function)
        error = done.exception()
        return (done.result() if error is None else None), error

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Do what stock asyncio does, and remember the future."""
        future = super().run_in_executor(executor, func, *args)
        self.submitted.asked = future
        return future

    def next_age(self) -> int:
        """Return a number that grows."""
        self.ages += 1
        return self.ages

    def make_pool(self) -> Pool:
        """Return an executor with one worker."""
        return Pool(self, 1)

    def park(self, name: str) -> asyncio.Future[None]:
        """Return a future that something outside completes."""
        future = self.create_future()
        self.outside[name] = Point(self, future)
        return future

    def time(self) -> float:
        """Return the driver's clock; it never goes backwards."""
        if sys._getframe(1).f_code.co_name == "_run_once":
            return self.clock_s
        now_s = self.clock_s + READ_S if self.in_default else next(self.reads, self.clock_s)
        self.move_to(now_s)
        return now_s

    def move_to(self, now_s: float) -> None:
        if now_s < self.clock_s:
            raise Illegal(f"the clock goes back from {self.clock_s:.9f} to {now_s:.9f}")
        self.clock_s = now_s

    def poll(self, timeout_s: float | None) -> None:
        """Let in what the script says, or what a world without delays does."""
        self.iteration += 1
        if self.in_default:
            self.poll_default(timeout_s)
            return
        assert self.script is not None
        names = self.script.deliveries.get(self.iteration, ())
        idle = timeout_s is None or timeout_s > 0 or all(map(is_void, self._ready))  # type: ignore[attr-defined]
        if timeout_s is None and not names:
            raise Deadlock
        if self.iteration > MAX_ITERATIONS:
            raise Illegal("nothing arrives any more")
        for name in names:
            self.complete(name, idle=idle)
        if self.iteration in self.script.clock:
            self.move_to(max(self.clock_s, self.script.clock[self.iteration]))

    def complete(self, name: str, *, idle: bool) -> None:
        if name.endswith(".done"):
            job = self.outside.pop(name.removesuffix(".done"))
            assert isinstance(job, Job)
            self.check(job, name, idle=idle)
            job.come_back(self)
            return
        op = self.outside[name]
        self.check(op, name, idle=idle)
        if isinstance(op, Point):
            del self.outside[name]
        op.complete(self)

    def check(self, op: Point | Job, name: str, *, idle: bool) -> None:
        if not idle and self.iteration < op.possible:
            raise Illegal(f"{name} cannot be back in iteration {self.iteration}, only in {op.possible}")

    def poll_default(self, timeout_s: float | None) -> None:
        self.clock_s += ITERATION_S
        if timeout_s == 0:
            return
        while not self._ready:  # type: ignore[attr-defined]
            self.outside = {name: op for name, op in self.outside.items() if op.pending}
            name = min(self.outside, key=lambda name: self.outside[name].age, default=None)
            if name is None:
                break
            op = self.outside.pop(name)
            if isinstance(op, Job) and op.outcome is not None:
                op.come_back(self)
                continue
            op.complete(self)
            if isinstance(op, Job) and not op.result.done():
                op.age = self.next_age()
                self.outside[name] = op
        if self._ready:  # type: ignore[attr-defined]
            return
        if timeout_s is None:
            raise Deadlock
        self.clock_s += math.ceil(timeout_s * 1000) / 1000 + WAKE_UP_S


def run_on_stock(program: Program, script: Script | None = None) -> Seen:
    """Run ``program`` on the driver and return how it ended and what it saw."""
    loop = StockLoop(script)
    program.make_pool = loop.make_pool
    try:
        ending = ending_of(loop, program)
        seen = Seen(ending, tuple(program.events))
        program.over = True
        clean_up(loop)
    finally:
        loop._default_executor = None  # type: ignore[attr-defined]
        loop.close()
    return seen


def ending_of(loop: StockLoop, program: Program) -> str:
    try:
        loop.run_until_complete(program())
    except Deadlock:
        return "deadlock"
    except Illegal as error:
        return f"illegal: {error}"
    except Exception as error:
        return f"raised {type(error).__name__}"
    return "returned"


def clean_up(loop: StockLoop) -> None:
    """End what is left."""
    loop.in_default = True
    left = asyncio.all_tasks(loop)
    for _ in range(20):
        if not left:
            break
        for task in left:
            task.cancel()
        with contextlib.suppress(Deadlock, Illegal, RuntimeError):  # stopped by what was queued before
            loop.run_until_complete(asyncio.wait(left, timeout=1e6))
        left = asyncio.all_tasks(loop)
    for task in left:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    with contextlib.suppress(Deadlock, Illegal):
        loop.run_until_complete(loop.shutdown_asyncgens())
