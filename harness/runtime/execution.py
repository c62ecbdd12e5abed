"""Executions: one run of one program under one scheduler, from a fresh loop to its ending as data.

Owns the life of the loop and what is left after it; must not know searches and oracles.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

from harness.model.choice import ChoiceKind, Scheduler, decisions_of
from harness.model.errors import DeadlockError, StalledError, TurnLimitError, UncontrolledError
from harness.model.outcome import Ending, Execution, Turn, digest_facts, digest_trace
from harness.model.schedule import Schedule
from harness.runtime import entropy, leftovers, threads, watchdog
from harness.runtime.drive import drive
from harness.runtime.faults import remember_moments
from harness.runtime.loop import ControlledLoop, LoopSettings
from harness.runtime.mould import Mould
from harness.runtime.silence import Noise, silenced

Program = Callable[[], Coroutine[Any, Any, Any]]

DEFAULT_TURN_LIMIT = 50_000
_SETTINGS = LoopSettings(turn_limit=DEFAULT_TURN_LIMIT)
_RETURNED = Ending("returned")
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
        self.beginnings: dict[tuple[int, ...], bytes] = {}  # states at the first arrival or turn, by the answers before
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
    loop.known_threads = session.known_threads
    loop.memory = session.memory if session.learning else dict(session.memory)
    unhandled: list[str] = []
    loop.unhandled = unhandled
    for begin in session.on_begin:
        begin(loop)
    try:
        ending = _run(loop, program)
        turns, now_s = loop.turn, loop.now()
        note = None if on_end is None else on_end(loop, ending)
        remember_moments(loop)
        fields = vars(loop)  # what was never asked for is not made now
        trace = tuple(loop.trace) if "trace" in fields else ()
        journal = tuple(loop.journal) if "journal" in fields else ()
        inversions = tuple(loop.inversions) if "inversions" in fields else ()
        choices, rung = len(loop.answers), loop.rung
        abandoned = leftovers.clean_up(loop, session.noise)
    finally:
        watchdog.attend(None)
        leftovers.close(loop)
    session.executions += 1
    if session.executions % COLLECT_EVERY == 0 or gc.get_count()[0] > COLLECT_OBJECTS:
        gc.collect()
    schedule = partial(_schedule_of, loop.answers, loop.asked, fields.get("labels"), settings, setup, trace)
    execution = Execution(ending, schedule, choices, turns, now_s, rung, trace, journal, inversions, abandoned)
    if "deviated" in fields:
        execution.deviated = tuple(fields["deviated"])
    if unhandled:
        execution.unhandled = tuple(unhandled)
    if note is not None:
        execution.notes["on_end"] = note
    execution.used_real_io = loop.used_real_io
    return execution


def _schedule_of(
    answers: list[int],
    kinds: list[ChoiceKind],
    labels: dict[int, tuple[str, str]] | None,
    settings: LoopSettings,
    setup: Mapping[str, str] | None,
    trace: tuple[Turn, ...],
) -> Schedule:
    """Return the schedule of an execution that made these choices."""
    return Schedule(
        decisions=decisions_of(answers, kinds, labels or {}),
        rung=settings.rung,
        discipline=settings.discipline,
        setup=setup or {},
        facts=digest_facts(trace) if settings.tracing else "",
        turns=f"{sys.version_info.major}.{sys.version_info.minor}:{digest_trace(trace)}" if settings.tracing else "",
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
        value = drive(loop, program())
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
