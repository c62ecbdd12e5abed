"""Executions: one run of one program under one scheduler, from a fresh loop to its ending as data.

Owns the life of the loop and what is left after it; must not know searches and oracles.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.model.choice import Scheduler
from harness.model.errors import DeadlockError, StalledError, TurnLimitError, UncontrolledError
from harness.model.outcome import Ending, Execution, digest_facts, digest_trace
from harness.model.schedule import Schedule
from harness.runtime import entropy, threads, watchdog
from harness.runtime.clock import real_time
from harness.runtime.identity import path_of
from harness.runtime.loop import ControlledLoop, LoopSettings, describe_unhandled
from harness.runtime.mould import Mould
from harness.runtime.silence import Noise, name_of, silenced
from harness.runtime.waits import live_tasks

Program = Callable[[], Coroutine[Any, Any, Any]]

DEFAULT_TURN_LIMIT = 50_000
_SETTINGS = LoopSettings(turn_limit=DEFAULT_TURN_LIMIT)
_RETURNED = Ending("returned")
# What is left after an ending gets this many turns to unwind, and so many more for each task; the rest is
# abandoned by name.
CLEANUP_TURNS = 1_000
CLEANUP_TURNS_PER_TASK = 20
# Leftover coroutines form cycles; they are collected where their noise is kept from the user, after this many
# executions or when this many objects were made.
COLLECT_EVERY = 200
COLLECT_OBJECTS = 50_000
# Within an execution the collector runs only when it made very many objects: when a weak reference dies, and
# when a forgotten generator is closed, is then the same each time and no matter of what ran before.
_THRESHOLDS = (200_000, 10, 10)


class Session:
    """The patches that many executions share; see ``open_session``.

    noise: what was kept from the user so far. learning: whether executions add to ``memory``; while it is
    off, the same choices meet the same options, however many executions came before.
    """

    def __init__(self) -> None:
        self.executions = 0
        self.on_begin: list[Callable[[ControlledLoop], None]] = []
        self.known_threads = threads.alive_threads()
        self.memory: dict[str, Any] = {}
        self.learning = True
        self.noise = Noise()
        self._mould: Mould | None = None

    def new_loop(self, scheduler: Scheduler | None, settings: LoopSettings) -> ControlledLoop:
        """Return a fresh loop: the first one of a session as asyncio makes it, later ones from a mould."""
        if self._mould is not None and not settings.allow_real_io:
            return ControlledLoop(scheduler, settings=settings, mould=self._mould)
        if self.executions == 1:
            self._mould = mould_of_loops()
        return ControlledLoop(scheduler, settings=settings)


@contextlib.contextmanager
def open_session(session: Session | None = None) -> Iterator[Session]:
    """Prepare the process for executions, once per search: seeded entropy, the watchdog and silence."""
    session = session or Session()
    thresholds = gc.get_threshold()
    # Frozen objects are not visited by the collector: a collection then costs what an execution left.
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        with watchdog.heeding_interrupts(), entropy.seeded_entropy(), watchdog.watched(), silenced(session.noise):
            try:
                yield session
            finally:
                gc.collect()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def execute(
    program: Program,
    scheduler: Scheduler | None = None,
    *,
    settings: LoopSettings | None = None,
    session: Session | None = None,
    setup: Mapping[str, str] | None = None,
    on_end: Callable[[ControlledLoop, Ending], Any] | None = None,
) -> Execution:
    """Run ``program`` once and return how it went.

    program: makes the coroutine to run. scheduler: answers the choice points; None for the default
    order. on_end: called at the ending, before anything that is left over is cancelled; what it returns
    is in ``notes["on_end"]``.
    Raises nothing of the program's own: how it ended is data. KeyboardInterrupt passes through.
    """
    if session is None:
        alone = Session()
        with silenced(alone.noise):
            execution = execute(program, scheduler, settings=settings, session=alone, setup=setup, on_end=on_end)
            if execution.abandoned or execution.ending.kind != "returned":
                gc.collect()
        return execution
    settings = settings or _SETTINGS
    entropy.reseed()
    loop = session.new_loop(scheduler, settings)
    abandoned: tuple[str, ...] = ()
    loop.known_threads = session.known_threads
    loop.memory = session.memory if session.learning else dict(session.memory)
    loop.unhandled = unhandled = list[str]()
    for begin in session.on_begin:
        begin(loop)
    try:
        ending = _run(loop, program)
        turns, now_s = loop.turn, loop.now()
        note = None if on_end is None else on_end(loop, ending)
        trace, journal = tuple(loop.trace), tuple(loop.journal)
        choices, decisions, rung = loop.choices, tuple(loop.decisions), loop.rung
        inversions = tuple(loop.inversions)
        abandoned = _clean_up(loop, session.noise)
    finally:
        watchdog.attend(None)
        _close(loop)
    session.executions += 1
    if session.executions % COLLECT_EVERY == 0 or gc.get_count()[0] > COLLECT_OBJECTS:
        gc.collect()
    schedule = Schedule(
        decisions=decisions,
        rung=settings.rung,
        discipline=settings.discipline,
        setup=setup or {},
        facts=digest_facts(trace) if settings.tracing else "",
        turns=f"{sys.version_info.major}.{sys.version_info.minor}:{digest_trace(trace)}" if settings.tracing else "",
    )
    return Execution(
        ending=ending,
        schedule=schedule,
        choices=choices,
        turns=turns,
        now_s=now_s,
        rung=rung,
        trace=trace,
        journal=journal,
        inversions=inversions,
        abandoned=abandoned,
        unhandled=tuple(unhandled),
        used_real_io=loop.used_real_io,
        notes={} if note is None else {"on_end": note},
    )


def mould_of_loops() -> Mould | None:
    """Return the mould of a loop that does no real I/O, or None where asyncio puts what we do not know into one."""
    loop = ControlledLoop()
    try:
        mould = Mould(loop)
        return mould if mould.usable else None
    finally:
        loop.close()


def _run(loop: ControlledLoop, program: Program) -> Ending:
    """Run the program to its ending."""
    watchdog.attend(loop)
    try:
        value = loop.run_until_complete(program())
    except DeadlockError as error:
        return Ending("deadlock", error=error, detail=str(error))
    except TurnLimitError as error:
        return Ending("turn-limit", error=error, detail=str(error))
    except UncontrolledError as error:
        return Ending("uncontrolled", error=error, detail=str(error))
    except StalledError as error:
        return Ending("stalled", error=error, detail=str(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        if loop.stalled:
            return Ending("stalled", error=error, detail=loop.stalled)
        return Ending("raised", error=error)
    if loop.stalled:
        return Ending("stalled", detail=loop.stalled)
    return _RETURNED if value is None else Ending("returned", value=value)


def _clean_up(loop: ControlledLoop, noise: Noise) -> tuple[str, ...]:
    """Cancel what is left, as ``asyncio.run`` does, in default order; return what would not end.

    What will not end is closed here, so that none of it runs later, in another execution.
    """
    loop.scheduler = loop.ran = loop.draw = None
    loop.tracing = False
    left = [task for task in live_tasks(loop) if task not in loop.graveyard] if loop.graveyard else live_tasks(loop)
    generators = list(loop._asyncgens) if "_asyncgens" in vars(loop) else []
    if not left and not generators and not loop.parked and not loop.graveyard:
        return ()
    loop.forget_ranks()
    loop.countdowns.clear()
    loop.set_exception_handler(lambda _loop, context: noise.note(describe_unhandled(context)))
    for task in left:
        task.cancel()
    turns = CLEANUP_TURNS + CLEANUP_TURNS_PER_TASK * len(left)
    for work in (_gather(left), loop.shutdown_asyncgens(), _drain(loop)):
        loop.settings = replace(loop.settings, turn_limit=loop.turn + turns, external_wait_s=0.05)
        with contextlib.suppress(Exception, StalledError, asyncio.CancelledError):
            loop.run_until_complete(work)
    names = [path_of(loop, task) for task in left if not task.done()]
    names += [f"generator {generator.__name__}" for generator in generators if generator.ag_frame is not None]
    generators.clear()
    with _unlogged() if loop.graveyard else contextlib.nullcontext():
        _close_tasks(loop, noise)
    return tuple(names)


def _close_tasks(loop: ControlledLoop, noise: Noise) -> None:
    """Close the coroutines of the tasks that would not end, as if they were inside the loop.

    Their ``finally`` blocks may make new tasks, which are closed before their first turn.
    """
    for _ in range(3):
        tasks = live_tasks(loop)
        if not tasks:
            return
        asyncio._set_running_loop(loop)
        try:
            for task in tasks:
                task._log_destroy_pending = False
                _close_coroutine(task.get_coro(), noise)
        finally:
            asyncio._set_running_loop(None)


def _close_coroutine(coro: Any, noise: Noise) -> None:
    try:
        coro.close()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # anything may come out of a program's clean-up; it is past its ending
        noise.note(f"{name_of(coro)} raised {type(error).__name__} while it was closed")


async def _gather(tasks: list[Any]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _drain(loop: ControlledLoop) -> None:
    """Let jobs that were submitted finish, as ``shutdown_default_executor`` does."""
    while any(op.kind == "job" for op in loop.parked):
        await loop.park("drain")


def _close(loop: ControlledLoop) -> None:
    """Close the loop and break its cycles, so that it is freed at once."""
    loop.parked.clear()
    loop.early.clear()
    loop.scratch.clear()
    loop.interesting_tasks.clear()  # the clock keeps a closed loop until the next execution
    loop.countdowns.clear()
    if loop.graveyard:
        with _unlogged():
            loop.graveyard.clear()
            collect()
    if not loop.is_running():
        loop.close()


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Keep the clean-up of a crashed run, which never happened, out of the logs."""
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(disabled)


def collect() -> None:
    """Collect what closed executions left, silently: their coroutines may misbehave outside their context."""
    with silenced(Noise()):
        gc.collect()


def elapsed_s(since: float) -> float:
    """Return real seconds since ``since``, a value of ``real_time()``."""
    return real_time() - since
