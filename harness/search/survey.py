"""Surveys: many schedules of one target, all of their outcomes kept.

Owns the set of schedules that is tried; must not stop at the first violation and must not judge fixes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.model.outcome import Execution, Violation
from harness.schedulers.ranks import Ranks
from harness.search.recording import Planned, Recorded
from harness.search.target import Target

# What differs between executions with one outcome: turns, addresses and checkpoint ids.
_PASSING = re.compile(r"\(turn \d+\)|0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}")

Plan = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one schedule led to. plan: position to value. what: the broken promises, without turn numbers; empty: none.

    shape: the await shape that it chose, or "as-is".
    """

    plan: Plan
    what: tuple[str, ...]
    shape: str = "as-is"

    @property
    def fails(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.what)


@dataclass(slots=True)
class Survey:
    """The outcomes of distinct schedules, in the order in which they were tried."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def failing(self) -> list[Outcome]:
        """The outcomes that break a promise."""
        return [outcome for outcome in self.outcomes if outcome.fails]

    @property
    def kinds(self) -> set[str]:
        """The oracles that were violated."""
        return {what.partition(":")[0] for outcome in self.failing for what in outcome.what}


def survey(target: Target, *, budget: int, plans: Iterable[Plan] = (), seed: int = 0) -> Survey:
    """Execute the default schedule, ``plans``, single deviations and random ranks of ``target``.

    budget: executions at most, ``plans`` not counted; a third of it is for random ranks.
    """
    found = Survey()
    seen: set[Plan] = set()
    source = random.Random(f"survey {seed}")
    spent = 0
    with target.open() as runner:

        def keep(plan: Plan, execution: Execution) -> None:
            if plan in seen:
                return
            seen.add(plan)
            found.outcomes.append(Outcome(plan, describe(execution.violations), shape_of(execution)))

        def execute(scheduler: Planned | Recorded) -> Execution:
            nonlocal spent
            spent += 1
            return runner.run(scheduler, tracing=True)

        recorder = Planned()
        keep((), execute(recorder))
        for plan in plans:
            keep(plan, runner.run(Planned(dict(plan)), tracing=True))
        singles: list[Plan] = [
            ((point.index, value),) for point in recorder.seen for value in range(1, min(point.options, 40))
        ]
        most = budget * 2 // 3
        # shapes open choices of their own: one level deeper for them
        for shaped in [plan for plan in singles if _kind(recorder, plan) == "shape"]:
            if spent >= most:
                break
            inner = Planned(dict(shaped))
            keep(shaped, execute(inner))
            holds = [point for point in inner.seen if point.kind == "hold" and point.index > shaped[0][0]]
            singles += [(*shaped, (point.index, 1)) for point in holds[:6]]
        for plan in singles:
            if spent >= most:
                break
            if plan in seen:
                continue
            scheduler = Planned(dict(plan))
            execution = execute(scheduler)
            if scheduler.fits:
                keep(plan, execution)
        while spent < budget:
            drawn = Recorded(Ranks(source))
            execution = execute(drawn)
            keep(tuple(sorted(drawn.plan.items())), execution)
    return found


def _kind(recorder: Planned, plan: Plan) -> str:
    return next(point.kind for point in recorder.seen if point.index == plan[0][0])


def describe(violations: Iterable[Violation]) -> tuple[str, ...]:
    """Return violations as text that is equal for equal outcomes: without turns, ids and times."""
    return tuple(f"{violation.oracle}: {_PASSING.sub('', violation.message)}" for violation in violations)


def shape_of(execution: Execution) -> str:
    """Return the await shape that a traced execution chose."""
    for decision in execution.schedule.decisions:
        if decision.kind == "shape":
            return decision.option.rpartition(": ")[2]
    return "as-is"


def repaired(base: Survey, fixed: Mapping[Plan, Outcome]) -> tuple[int, int]:
    """Return how many of the failing schedules of ``base`` pass in ``fixed``, and how many there are."""
    again = [fixed[outcome.plan] for outcome in base.failing if outcome.plan in fixed]
    return sum(not outcome.fails for outcome in again), len(again)
