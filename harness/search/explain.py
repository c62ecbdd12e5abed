"""Explanations: the ordering that decides, and the nearest execution in which the promise holds.

Owns the choice of both and their verification; must not know how they are shown.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from harness.model.errors import NothingBrokenError
from harness.model.explanation import Explanation, Timeline
from harness.model.outcome import Execution, Violation
from harness.model.schedule import Schedule
from harness.search.deciding import decide
from harness.search.evidence import Evidence
from harness.search.readable import DEFAULT, in_readable_form, schedule_text
from harness.search.recording import Labelled
from harness.search.replay import replay, replay_text
from harness.search.result import Counterexample
from harness.search.separate import Sample
from harness.search.target import Runner, Target
from harness.search.timeline import mark, timeline_of
from harness.search.witness import unwitnessed, witnessed

# Executions around the schedule, and with random ranks: with any shapes and faults, and with its own.
AROUND = 44
DRAWN = 16
# What should hold where no oracle says so.
_PROMISES = {
    "assertion": "the program returns without an error",
    "progress": "with everything delivered, the program ends",
    "controlled": "the program stays under control of the loop",
    "determinism": "two executions of one schedule are the same",
}
# A hundred executions of these would keep the user waiting.
_ENDLESS = {"stalled": "each execution blocks for seconds", "turn-limit": "each execution takes all turns"}


def explain_counterexample(target: Target, found: Counterexample, *, title: str = "") -> Counterexample:
    """Return ``found`` with its explanation."""
    return replace(found, explanation=explanation_of(target, found, title=title or target.name))


def explanation_of(target: Target, found: Counterexample, *, title: str) -> Explanation:
    """Return why ``found`` fails. title: the scenario and the storage, or the test."""
    reason = _ENDLESS.get(found.execution.ending.kind, "")
    if not found.replays:
        reason = "it went another way when it was executed again"
    explanation = described(target, found, title=title, unexplained=reason)
    if reason:
        return explanation
    with target.open() as runner:
        return _explained(runner, explanation)


def described(target: Target, found: Counterexample, *, title: str, unexplained: str) -> Explanation:
    """Return what is known of ``found`` without executing anything. unexplained: why it stays so."""
    execution, violation = found.execution, found.violation
    return Explanation(
        title=title,
        setup=target.setup,
        violation=violation,
        promise=promise_of(target, violation),
        failing=plain_timeline(execution, text=found.text or schedule_text(execution.schedule.decisions)),
        found_after=found.found_after,
        found_by=found.found_by,
        difference=found.difference,
        sleeps=tuple(dict.fromkeys(name for pair in execution.inversions for name in pair)),
        without=target.without,
        minimal=found.minimal,
        unexplained=unexplained,
    )


def explain_schedule(target: Target, schedule: Schedule | str, *, title: str) -> Explanation:
    """Return why a schedule, as recorded or in words, fails.

    Raises DivergenceError or UsageError where it does not fit the program, and NothingBrokenError when it passes.
    """
    given = replay_text(target, schedule) if isinstance(schedule, str) else replay(target, schedule)
    execution = given.execution
    if not execution.violations:
        raise NothingBrokenError(f"{title}: no promise is broken any more, so there is nothing to explain")
    if isinstance(schedule, str) and " until " in schedule:
        # a token and what is made of it hold an op to the end
        execution = replay(target, replace(execution.schedule, facts="", turns="")).execution
        if not execution.violations:
            raise NothingBrokenError(f"{title}: it fails with its 'until' only, and what is let go cannot be explained")
    text = schedule if isinstance(schedule, str) else ""
    found = Counterexample(execution, execution.violations[0], 0, "", given.same_trace is not False, text=text)
    return explanation_of(target, found, title=title)


def promise_of(target: Target, violation: Violation) -> str:
    """Return what should hold, as a sentence."""
    for judge in target.judges:
        if getattr(judge, "__module__", "").rpartition(".")[2] == violation.oracle.replace("-", "_"):
            return (inspect.getdoc(judge) or "").partition("\n")[0].removeprefix("Judge: ").rstrip(".")
    return _PROMISES.get(violation.oracle, "")


def _explained(runner: Runner, explanation: Explanation) -> Explanation:
    """Return ``explanation`` with what decides and with the nearest passing execution."""
    schedule, oracle = explanation.schedule, explanation.violation.oracle
    failing = witnessed_timeline(runner, schedule, oracle=oracle)
    evidence = Evidence(runner, schedule, oracle=oracle)
    _look_around(evidence)
    nearest = _nearest(evidence.samples)
    passing = None if nearest is None else witnessed_timeline(runner, nearest.schedule, oracle=oracle)
    timelines = [failing] if passing is None else [failing, passing]
    deciding = None if passing is None else decide(evidence, timelines)
    pairs = [] if deciding is None else [(item.first.name, item.second.name) for item in deciding.orderings]
    tried = evidence.executions + len(timelines)
    return replace(
        explanation,
        unexplained="" if passing is not None else f"all {tried} executions that were tried fail, in whatever order",
        failing=mark(failing, pairs),
        passing=None if passing is None else mark(passing, pairs),
        deciding=deciding,
        changes=() if passing is None else _changes(failing.text, passing.text),
        executions=tried,
    )


def witnessed_timeline(runner: Runner, schedule: Schedule, *, oracle: str) -> Timeline:
    """Execute a schedule and return all of it."""
    labels = Labelled({decision.index: decision.value for decision in schedule.decisions})
    execution, witness = witnessed(runner, labels, discipline=schedule.discipline, rung=schedule.rung)
    text = schedule_text(execution.schedule.decisions)
    if schedule.discipline == "ranks":
        text = in_readable_form(execution.schedule.decisions, labels.names)
    return timeline_of(execution, witness, text=text, oracle=oracle)


def plain_timeline(execution: Execution, *, text: str) -> Timeline:
    """Return what is known of an execution that was only traced: its rows, without causes."""
    oracle = execution.violations[0].oracle if execution.violations else ""
    return timeline_of(execution, unwitnessed(execution), text=text, oracle=oracle)


def _look_around(evidence: Evidence) -> None:
    """Execute the schedule, the default one, each with single changes, and random ones."""
    for base in (evidence.plan, {}):
        planned = evidence.execute(base)
        changes = [point for point in planned.seen if point.kind not in ("shape", "order", "program")]
        changes.sort(key=lambda point: (not point.interesting, point.index))
        for point in changes[: AROUND // 2]:
            evidence.execute({**base, point.index: 0 if point.index in base else 1})
    for index in evidence.plan:
        evidence.execute({other: value for other, value in evidence.plan.items() if other != index})
    source = random.Random("explain 0")
    for alike in (False, True):
        for _ in range(DRAWN):
            evidence.draw(source, alike=alike)


def _nearest(samples: Sequence[Sample]) -> Sample | None:
    """Return the passing sample that takes the fewest changes.

    Of these one with the same shapes and faults, with the fewest deviations, and that goes the same way longest.
    """
    passing = [sample for sample in samples if not sample.fails]
    if not passing or not samples[0].fails:
        return None
    model = samples[0]
    wanted = set(_choices(model))

    def distance(sample: Sample) -> tuple[int, bool, int, int]:
        own = _choices(sample)
        pairs = zip(model.positions, sample.positions, strict=False)
        same = sum(1 for one, other in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return len(wanted.symmetric_difference(own)), not sample.alike, len(own), -same

    return min(passing, key=distance)


def _choices(sample: Sample) -> list[tuple[int, str, str]]:
    return [(item.index, item.label, item.option) for item in sample.schedule.decisions]


def _changes(failing: str, passing: str) -> tuple[str, ...]:
    """Return the clauses that leave and those that come, in the order of the schedules."""
    one, other = ([clause for clause in text.split("; ") if clause != DEFAULT] for text in (failing, passing))
    return (
        *(f"- {clause}" for clause in one if clause not in other),
        *(f"+ {clause}" for clause in other if clause not in one),
    )
