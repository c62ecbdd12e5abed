"""Oracles on good and bad journals."""

import pytest

from harness.model.outcome import Event
from harness.oracles.completed_steps_restored import judge


def journal(*entries):
    """Return events from (kind, run, call-or-None) triples; turns count up."""
    events = []
    for turn, (kind, run, detail) in enumerate(entries, 1):
        data = {"resumes": detail} if kind == "run.started" else {"call": detail}
        events.append(Event(turn, turn * 1e-6, kind, run, str(detail), data))
    return events


FIRST = [("run.started", 0, None), ("step.invoked", 0, "a(1)"), ("step.completed", 0, "a(1)"), ("run.ended", 0, None)]

GOOD = {
    "restored": [*FIRST, ("run.started", 1, 0), ("step.restored", 1, "a(1)")],
    "other arguments": [*FIRST, ("run.started", 1, 0), ("step.invoked", 1, "a(2)")],
    "a new run, not a resume": [*FIRST, ("run.started", 1, None), ("step.invoked", 1, "a(1)")],
    "never completed": [
        ("run.started", 0, None),
        ("step.invoked", 0, "a(1)"),
        ("step.failed", 0, "a(1)"),
        ("run.ended", 0, None),
        ("run.started", 1, 0),
        ("step.invoked", 1, "a(1)"),
    ],
    "completed only after the end": [
        ("run.started", 0, None),
        ("step.invoked", 0, "a(1)"),
        ("run.ended", 0, None),
        ("step.completed", 0, "a(1)"),
        ("run.started", 1, 0),
        ("step.invoked", 1, "a(1)"),
    ],
    "a second equal call is new": [
        *FIRST,
        ("run.started", 1, 0),
        ("step.restored", 1, "a(1)"),
        ("step.invoked", 1, "a(1)"),
    ],
    "an orphan of the first run": [*FIRST, ("run.started", 1, 0), ("step.invoked", 0, "a(1)")],
}
BAD = {
    "executed again": [*FIRST, ("run.started", 1, 0), ("step.invoked", 1, "a(1)")],
    "two runs later": [
        *FIRST,
        ("run.started", 1, 0),
        ("step.restored", 1, "a(1)"),
        ("run.ended", 1, None),
        ("run.started", 2, 1),
        ("step.invoked", 2, "a(1)"),
    ],
    "the other of two calls": [
        *FIRST,
        ("run.started", 1, 0),
        ("step.restored", 1, "a(2)"),
        ("step.invoked", 1, "a(1)"),
    ],
}


@pytest.mark.parametrize("entries", GOOD.values(), ids=GOOD)
def test_completed_steps_restored_passes_good_journals(entries):
    """No violation."""
    assert judge(journal(*entries)) is None


@pytest.mark.parametrize("entries", BAD.values(), ids=BAD)
def test_completed_steps_restored_names_the_execution_of_bad_journals(entries):
    """The violation is at the execution that should not have been."""
    violation = judge(journal(*entries))
    assert violation is not None
    assert (violation.oracle, violation.turn) == ("completed_steps_restored", len(entries))
    assert violation.message.startswith("a(1) completed in run 0 (turn 3) and was executed again in run")
