"""Replays: one execution that follows a schedule, and whether it went as recorded.

Owns the comparison with the recorded trace; must not know where the schedule came from.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.choice import ChoicePoint, Scheduler
from harness.model.errors import DivergenceError
from harness.model.outcome import Execution, Turn
from harness.model.schedule import Schedule
from harness.search.readable import Readable, parse_readable
from harness.search.recording import Replay
from harness.search.target import Target


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How a replay went.

    same_trace: whether the recorded trace came again, every turn of it on the Python that recorded it, and
    every fact of it on another one; None when the schedule carries no digest.
    """

    execution: Execution
    same_trace: bool | None


def replay(target: Target, schedule: Schedule) -> ReplayResult:
    """Execute ``schedule`` once, with a trace.

    Raises DivergenceError where the program meets other choices than the recorded ones.
    """
    scheduler = Replay(schedule)
    with target.open() as runner:
        execution = runner.run(scheduler, tracing=True, discipline=schedule.discipline, rung=schedule.rung)
    if scheduler.diverged is not None:
        raise scheduler.diverged
    scheduler.check_ended(execution.choices, now_s=execution.now_s)
    return ReplayResult(execution, same_trace(schedule, execution.schedule))


def replay_text(target: Target, text: str) -> ReplayResult:
    """Execute a readable schedule once, with a trace.

    Raises UsageError for a clause that is none, and for one that names what the program does not have.
    """
    scheduler = parse_readable(text)
    with target.open() as runner:
        execution = runner.run(scheduler, tracing=True)
    scheduler.check()
    return ReplayResult(execution, None)


class Watched:
    """Wraps a scheduler and keeps the name and the source line of each op, in the order in which they were parked."""

    def __init__(self, inner: Scheduler) -> None:
        self._inner = inner
        self.parked: list[tuple[str, str]] = []

    def choose(self, point: ChoicePoint, /) -> int:
        """Return what the inner scheduler chooses."""
        if point.kind == "hold":
            self.parked.append((str(point.subject), str(getattr(point.subject, "site", ""))))
        return self._inner.choose(point)

    def heed(self, turn: Turn) -> None:
        """Pass on what happened."""
        heed = getattr(self._inner, "heed", None)
        if heed is not None:
            heed(turn)


def watch(target: Target, schedule: Schedule | str) -> tuple[Execution, list[tuple[str, str]]]:
    """Execute a schedule, as recorded or in words, and return its ops as they were parked, too.

    Raises DivergenceError or UsageError where the schedule does not fit the program.
    """
    inner: Replay | Readable = parse_readable(schedule) if isinstance(schedule, str) else Replay(schedule)
    scheduler = Watched(inner)
    with target.open() as runner:
        if isinstance(schedule, str):
            execution = runner.run(scheduler, tracing=True)
        else:
            execution = runner.run(scheduler, tracing=True, discipline=schedule.discipline, rung=schedule.rung)
    if isinstance(inner, Readable):
        inner.check()
    elif inner.diverged is not None:
        raise inner.diverged
    else:
        inner.check_ended(execution.choices, now_s=execution.now_s)
    return execution, scheduler.parked


def same_trace(recorded: Schedule, now: Schedule) -> bool | None:
    """Return whether two schedules carry the digests of one trace; None when the first carries none."""
    if not recorded.facts:
        return None
    if recorded.turns.partition(":")[0] == now.turns.partition(":")[0]:
        return recorded.turns == now.turns
    return recorded.facts == now.facts


__all__ = ["DivergenceError", "ReplayResult", "replay", "replay_text", "same_trace", "watch"]
