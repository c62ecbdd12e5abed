"""Executions: one run of one program under one scheduler, from a fresh loop to its ending as data.

Owns the life of the loop and what is left after it; must not know searches and oracles.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.model.choice import Scheduler
from harness.model.errors import DeadlockError, StalledError, TurnLimitError, UncontrolledError
from harness.model.outcome import Ending, Execution, digest_facts, digest_trace
from harness.model.schedule import Schedule
from harness.runtime import entropy, external, watchdog
from harness.runtime.clock import real_time
from harness.runtime.identity import path_of
from harness.runtime.loop import ControlledLoop, LoopSettings
from harness.runtime.waits import live_tasks

Program = Callable[[], Coroutine[Any, Any, Any]]

DEFAULT_TURN_LIMIT = 100_000
# What is left after an ending gets this many turns to unwind; the rest is abandoned by name.
CLEANUP_TURNS = 10_000
# Leftover coroutines form cycles; they are collected where their noise is kept from the user.
COLLECT_EVERY = 200


class Session:
    """The patches that many executions share; see ``open_session``."""

    def __init__(self) -> None:
        self.executions = 0
        self.on_begin: list[Callable[[ControlledLoop], None]] = []
        self.known_threads = external.thread_idents()
        self.memory: dict[str, int] = {}


@contextlib.contextmanager
def open_session(session: Session | None = None) -> Iterator[Session]:
    """Prepare the process for executions, once per search: seeded entropy and the watchdog."""
    # Frozen objects are not visited by the collector: a collection then costs what an execution left.
    gc.freeze()
    try:
        with entropy.seeded_entropy(), watchdog.watched():
            yield session or Session()
    finally:
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
    settings = settings or LoopSettings(turn_limit=DEFAULT_TURN_LIMIT)
    entropy.reseed()
    loop = ControlledLoop(scheduler, settings=settings)
    abandoned: tuple[str, ...] = ()
    if session is not None:
        loop.known_threads = session.known_threads
        loop.memory = session.memory
        for begin in session.on_begin:
            begin(loop)
    try:
        ending = _run(loop, program)
        turns, now_s = loop.turn, loop.time()
        note = None if on_end is None else on_end(loop, ending)
        trace, journal = tuple(loop.trace), tuple(loop.journal)
        choices, decisions, rung = loop.choices, tuple(loop.decisions), loop.rung
        inversions = tuple(loop.inversions)
        abandoned = _clean_up(loop)
    finally:
        watchdog.attend(None)
        _close(loop)
    if session is not None:
        session.executions += 1
        if session.executions % COLLECT_EVERY == 0:
            collect()
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
        used_real_io=loop.used_real_io,
        notes={} if note is None else {"on_end": note},
    )


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
    return Ending("returned", value=value)


def _clean_up(loop: ControlledLoop) -> tuple[str, ...]:
    """Cancel what is left, as ``asyncio.run`` does, in default order; return what would not end.

    What will not end is kept from warning later, in another execution.
    """
    loop.scheduler = None
    loop.tracing = False
    left = [task for task in live_tasks(loop) if task not in loop.graveyard] if loop.graveyard else live_tasks(loop)
    for task in loop.graveyard:
        if isinstance(task, asyncio.Task):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
    if not left and not loop._asyncgens and not loop.parked:  # type: ignore[attr-defined]
        return ()
    loop.forget_ranks()
    loop.countdowns.clear()
    loop.settings = replace(loop.settings, turn_limit=loop.turn + CLEANUP_TURNS, external_wait_s=0.05)
    loop.set_exception_handler(lambda _loop, _context: None)
    for task in left:
        task.cancel()
    for work in (_gather(left), loop.shutdown_asyncgens(), _drain(loop)):
        with contextlib.suppress(Exception, StalledError, asyncio.CancelledError):
            loop.run_until_complete(work)
    abandoned = live_tasks(loop)
    for task in abandoned:
        task._log_destroy_pending = False
    return tuple(path_of(loop, task) for task in abandoned if task in left)


async def _gather(tasks: list[Any]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _drain(loop: ControlledLoop) -> None:
    """Let jobs that were submitted finish, as ``shutdown_default_executor`` does."""
    while any(op.kind == "job" for op in loop.parked):
        await loop.park("drain")


def _close(loop: ControlledLoop) -> None:
    """Close the loop and break its cycles, so that it is freed at once."""
    if loop.graveyard:
        with _silence():
            _close_quietly(loop)
            loop.graveyard.clear()
            # Again for what clean-up made or resurrected: a coroutine for a closed loop, one that awaits in a ``finally``.
            for _ in range(5):
                if not gc.collect():
                    break
        return
    _close_quietly(loop)


def _close_quietly(loop: ControlledLoop) -> None:
    loop.parked.clear()
    loop.early.clear()
    loop.scratch.clear()
    loop.interesting_tasks.clear()  # the clock keeps a closed loop until the next execution
    loop.countdowns.clear()
    if not loop.is_running():
        loop.close()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep from the user what crashed runs say when they are freed.

    Closing their coroutines runs ``finally`` blocks outside their context, on a closed loop: what these log, warn of
    and raise is of no process that ever lived. The loop is closed first, so that it finalizes no async generator.
    """
    disabled, hook = logging.root.manager.disable, sys.unraisablehook
    logging.disable()
    sys.unraisablehook = lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook
        logging.disable(disabled)


def collect() -> None:
    """Collect what closed executions left, silently: their coroutines may misbehave outside their context."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def elapsed_s(since: float) -> float:
    """Return real seconds since ``since``, a value of ``real_time()``."""
    return real_time() - since
