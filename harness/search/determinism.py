"""Determinism: the same plan executed twice, and the first turn that differs.

Owns the comparison of two executions of one schedule; must not know whether they broke a promise.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.outcome import Execution, Violation, first_difference
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.recording import Planned
from harness.search.target import Runner


def execute_twice(
    runner: Runner,
    plan: Mapping[int, int] | None = None,
    *,
    discipline: Discipline = "ranks",
    rung: Rung | None = None,
    recorder: Planned | None = None,
) -> tuple[Execution, Execution, str]:
    """Execute ``plan`` twice with a trace; no plan is the default schedule.

    recorder: a scheduler that follows the same plan and records what it sees, for the first execution.
    Returns both executions and what ``difference`` says of them.
    """
    first, second = (
        runner.run(scheduler, tracing=True, discipline=discipline, rung=rung)
        for scheduler in (recorder or Planned(plan or {}), Planned(plan or {}))
    )
    return first, second, difference(first, second)


def difference(first: Execution, second: Execution) -> str:
    """Return the first turn that differs as ``one | other``, or "" when nothing does.

    Compared are the traces, and how the programs ended. Messages are not: they may hold addresses.
    """
    turns = first_difference(first.trace, second.trace)
    if turns is not None:
        return f"{turns[0]} | {turns[1]}"
    one, other = ending_of(first), ending_of(second)
    return "" if one == other else f"{one} | {other}"


def ending_of(execution: Execution) -> str:
    """Say how an execution ended, without its message."""
    ending = execution.ending
    error = f" {type(ending.error).__name__}" if ending.kind == "raised" else ""
    return f"turn {execution.turns} ended: {ending.kind}{error}"


def uncontrolled(execution: Execution, found: str) -> Violation:
    """Return the violation to report for a program whose executions differ."""
    message = (
        f"two executions of one schedule differ: {found}. Something outside the schedule decides here: "
        "a thread, a clock, an address or what an earlier execution left."
    )
    return Violation("determinism", message, execution.turns)
