"""Targets: a program with everything that one execution of it needs, patched once per search.

Owns the life of storages and patches around executions; must not know in which order schedules are tried.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.model.choice import Scheduler
from harness.model.outcome import Ending, Event, Execution, Violation
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.runtime import watchdog
from harness.runtime.execution import DEFAULT_TURN_LIMIT, Session, execute, open_session
from harness.runtime.loop import LoopSettings
from harness.runtime.task_sets import groups_keep_task_sets

Oracle = Callable[[Sequence[Event]], Violation | None]
Patch = Callable[[Session], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """One program on one storage.

    program: called for each execution. setup: what a token must carry to build this target again.
    judges: the oracles. without: the oracles that were switched off, with the reasons. rung: the
    highest assumption. patches: entered in order around all executions.
    """

    name: str
    program: Callable[[], Coroutine[Any, Any, Any]]
    setup: Mapping[str, str] = field(default_factory=dict)
    judges: tuple[Oracle, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    rung: Rung = Rung.LATENCY
    patches: tuple[Patch, ...] = ()
    allow_real_io: bool = False
    turn_limit: int = DEFAULT_TURN_LIMIT

    def with_setup(self, **more: str) -> Target:
        """Return this target with more for its tokens to carry."""
        return replace(self, setup={**self.setup, **more})

    @contextlib.contextmanager
    def open(self) -> Iterator[Runner]:
        """Apply the patches and yield what runs executions; everything is undone at the end."""
        with contextlib.ExitStack() as stack:
            session = Session()
            stack.enter_context(groups_keep_task_sets())
            for patch in self.patches:
                stack.enter_context(patch(session))
            yield Runner(self, stack.enter_context(open_session(session)))


class Runner:
    """Executes a target again and again."""

    def __init__(self, target: Target, session: Session) -> None:
        self.target = target
        self.session = session
        self._settings: dict[tuple[bool, Discipline, Rung | None], LoopSettings] = {}

    def run(
        self,
        scheduler: Scheduler | None,
        *,
        tracing: bool = False,
        discipline: Discipline = "ranks",
        rung: Rung | None = None,
    ) -> Execution:
        """Execute once and judge the outcome."""
        target = self.target
        wanted = tracing, discipline, rung
        settings = self._settings.get(wanted)
        if settings is None:
            settings = self._settings[wanted] = LoopSettings(
                rung=target.rung if rung is None else rung,
                discipline=discipline,
                turn_limit=target.turn_limit,
                allow_real_io=target.allow_real_io,
                tracing=tracing,
            )
        execution = execute(target.program, scheduler, settings=settings, session=self.session, setup=target.setup)
        watchdog.raise_if_interrupted()
        if target.judges or execution.ending.kind != "returned":
            execution.violations = tuple(self._judge(execution))
        return execution

    def _judge(self, execution: Execution) -> Iterator[Violation]:
        ending = execution.ending
        for judge in self.target.judges:
            violation = judge(execution.journal)
            # the ending says more of a run that never ended: who waits for what
            if violation is not None and not (violation.oracle == "progress" == oracle_of(ending)):
                yield violation
        if ending.kind != "returned":
            yield Violation(oracle_of(ending), describe_ending(ending), execution.turns)


def oracle_of(ending: Ending) -> str:
    """Return the name of the oracle that an ending breaks, or "" for ``returned``."""
    if ending.kind == "returned":
        return ""
    return "assertion" if ending.kind == "raised" else ("controlled" if ending.kind == "uncontrolled" else "progress")


def describe_ending(ending: Ending) -> str:
    """Say how the program ended, with the wait graph where there is one."""
    if ending.kind == "raised":
        return f"the program {ending}"
    return ending.detail or str(ending)
