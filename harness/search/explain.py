"""Explanations: the one ordering that separates failing executions from passing ones.

Owns the choice of that pair and the executions that support it; must not know how it is shown.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from harness.model.outcome import Execution, Turn
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.schedulers.ranks import Ranks
from harness.search.recording import Planned, Recorded
from harness.search.result import Counterexample, Deciding, Moment
from harness.search.target import Runner, Target

SAMPLES = 60
# Executions with fresh seeds that a pair must separate too before it is believed.
HELD_OUT = 20
MAX_EVENTS = 160

# What a reader would name first: a failure and the commit of a save, rather than the turns between them.
_WEIGHTS = (
    ("raises", 0),
    ("save.committed", 0),
    ("run.cancelled", 0),
    ("run.timeout", 0),
    ("step.failed", 2),
    ("step.completed", 2),
    ("save.acknowledged", 3),
    ("save.snapshot", 4),
    ("deliver", 4),
    ("save.called", 5),
    ("step.invoked", 6),
    ("save.", 7),
    ("effect", 4),
    ("is cancelled", 8),
    ("held", 9),
    ("returns", 9),
    ("run.", 9),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One execution: whether it failed, and at which position each event came first."""

    fails: bool
    positions: Mapping[str, int]
    places: Mapping[str, str]


def explain(
    runner: Runner, plan: Mapping[int, int], *, discipline: Discipline, rung: Rung, oracle: str
) -> Deciding | None:
    """Return the pair of events whose order decides whether ``oracle`` is violated, or None.

    plan: a failing schedule. The pair separates every sampled execution, and held-out ones of other seeds.
    """
    samples = list(_distinct(_around(runner, plan, discipline=discipline, rung=rung, oracle=oracle)))
    failing = [sample for sample in samples if sample.fails]
    passing = [sample for sample in samples if not sample.fails]
    if not failing or not passing:
        return None
    held_out = list(_distinct(_random(runner, discipline=discipline, rung=rung, oracle=oracle, seed=1, count=HELD_OUT)))
    for first, second in _separating(failing, passing):
        if all(_supports(sample, first, second) for sample in held_out):
            places = {**passing[0].places, **failing[0].places}
            return Deciding(
                Moment(in_words(first), places.get(first, "")),
                Moment(in_words(second), places.get(second, _place(samples, second))),
                len(failing) + sum(sample.fails for sample in held_out),
                len(passing) + sum(not sample.fails for sample in held_out),
            )
    return None


def explain_counterexample(target: Target, found: Counterexample) -> Counterexample:
    """Return ``found`` with its deciding ordering, where there is one."""
    if found.execution.ending.kind in ("stalled", "turn-limit"):
        return found  # a hundred executions of this would keep the user waiting
    schedule = found.execution.schedule
    plan = {decision.index: decision.value for decision in schedule.decisions}
    with target.open() as runner:
        pair = explain(runner, plan, discipline=schedule.discipline, rung=schedule.rung, oracle=found.violation.oracle)
    return replace(found, deciding=pair, explained=True)


def _place(samples: list[Sample], name: str) -> str:
    return next((sample.places[name] for sample in samples if name in sample.places), "")


def _separating(failing: list[Sample], passing: list[Sample]) -> list[tuple[str, str]]:
    """Return the pairs that separate all samples, the most telling first."""
    names = [name for name in failing[0].positions if _weight(name) < 9]
    names = sorted(names, key=lambda name: (_weight(name), failing[0].positions[name]))[:MAX_EVENTS]
    others = list(dict.fromkeys([*names, *(name for sample in passing for name in sample.positions)]))
    others = sorted((name for name in others if _weight(name) < 9), key=_weight)[:MAX_EVENTS]
    samples = [*failing, *passing]
    pairs = [
        (first, second)
        for first in names
        for second in others
        if first != second and all(_supports(sample, first, second) for sample in samples)
    ]
    # Of equally telling pairs the one whose first event comes earliest: the cause rather than what it led to.
    return sorted(pairs, key=lambda pair: (_weight(pair[0]) + _weight(pair[1]), failing[0].positions[pair[0]], pair))


def _supports(sample: Sample, first: str, second: str) -> bool:
    """Return whether ``sample`` fails exactly because ``first`` came before ``second``."""
    never = len(sample.positions) + 1
    one, other = sample.positions.get(first, never), sample.positions.get(second, never)
    return one < other if sample.fails else other < one


def _weight(name: str) -> int:
    return next((weight for mark, weight in _WEIGHTS if mark in name), 8)


def _around(
    runner: Runner, plan: Mapping[int, int], *, discipline: Discipline, rung: Rung, oracle: str
) -> Iterator[Sample]:
    """Yield the failing schedule, the default one, each with single changes, and random ones."""
    left = SAMPLES
    for base in (dict(plan), {}):
        recorder = Planned(base)
        yield _sample(runner.run(recorder, tracing=True, discipline=discipline, rung=rung), oracle)
        changes = [point for point in recorder.seen if point.kind not in ("shape", "order")]
        changes.sort(key=lambda point: (not point.interesting, point.index))
        for point in changes[: left // 4]:
            changed = dict(base)
            changed[point.index] = 0 if point.index in base else 1
            execution = runner.run(Planned(changed), tracing=True, discipline=discipline, rung=rung)
            yield _sample(execution, oracle)
    for index, _ in plan.items():
        fewer = {position: value for position, value in plan.items() if position != index}
        yield _sample(runner.run(Planned(fewer), tracing=True, discipline=discipline, rung=rung), oracle)
    yield from _random(runner, discipline=discipline, rung=rung, oracle=oracle, seed=0, count=left // 2)


def _random(
    runner: Runner, *, discipline: Discipline, rung: Rung, oracle: str, seed: int, count: int
) -> Iterator[Sample]:
    source = random.Random(f"explain {seed}")
    for _ in range(count):
        scheduler = Recorded(Ranks(source))
        yield _sample(runner.run(scheduler, tracing=True, discipline=discipline, rung=rung), oracle)


def _sample(execution: Execution, oracle: str) -> Sample:
    positions: dict[str, int] = {}
    places: dict[str, str] = {}
    fails = any(violation.oracle == oracle for violation in execution.violations)
    for position, turn in enumerate(execution.trace):
        name = event_name(turn)
        if name and name not in positions:
            positions[name] = position
            places[name] = turn.where
    return Sample(fails, positions, places)


def event_name(turn: Turn) -> str:
    """Return a name for a trace entry that means the same in other schedules of the program, or ""."""
    if turn.what == "waits" or turn.what.startswith("call "):
        return ""
    if turn.lane.startswith("run "):
        return f"{turn.what} ({turn.lane})"
    if turn.lane == "loop":
        return turn.what
    return f"{turn.lane} {turn.what}"


_VERBS = {
    "save.committed": "commits",
    "save.acknowledged": "is acknowledged",
    "save.called": "is called",
    "save.snapshot": "takes its snapshot",
    "save.cancelled": "is cancelled",
    "run.timeout": "times out",
    "step.invoked": "begins",
    "step.completed": "completes",
    "step.failed": "fails",
    "step.restored": "is restored",
    "deliver": "arrives",
}


def in_words(name: str) -> str:
    """Return an event's name as a clause, such as ``done/save#1 commits (run 0)``."""
    kind, _, rest = name.partition(" ")
    if kind not in _VERBS:
        return name
    subject, bracket, run = rest.partition(" (run ")
    return f"{subject} {_VERBS[kind]}{bracket}{run}"


def _distinct(samples: Iterator[Sample]) -> Iterator[Sample]:
    seen: set[tuple[str, ...]] = set()
    for sample in samples:
        key = tuple(sorted(sample.positions, key=sample.positions.__getitem__))
        if key not in seen:
            seen.add(key)
            yield sample
