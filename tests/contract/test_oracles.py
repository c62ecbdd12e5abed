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


# -- saves that name what they cover ---------------------------------------------------------------------


def crashed_after(*saves):
    """Return a journal in which a(1) and b(1) completed, ``saves`` followed, the process died and a(1) ran again."""
    facts = [("run.started", 0, {"resumes": None})]
    facts += [("step.completed", 0, {"call": call}) for call in ("a(1)", "b(1)")]
    facts += [(kind, 0, {"save": name, **data}) for kind, name, data in saves]
    facts += [("run.ended", 0, {"how": "crashed"}), ("run.started", 1, {"resumes": 0})]
    facts += [("step.invoked", 1, {"call": "a(1)"})]
    return [
        Event(turn, turn * 1e-6, kind, run, data.pop("save", ""), data)
        for turn, (kind, run, data) in enumerate(facts, 1)
    ]


@pytest.mark.parametrize(
    ("saves", "promised"),
    [
        ([("save.called", "s", {}), ("save.acknowledged", "s", {})], True),
        ([("save.called", "s", {"covers": ["a(1)"]}), ("save.acknowledged", "s", {"covers": ["a(1)"]})], True),
        ([("save.called", "s", {"covers": ["b(1)"]}), ("save.acknowledged", "s", {"covers": ["b(1)"]})], False),
        ([("save.called", "s", {"covers": ["a(1)"]})], False),
        ([("save.called", "s", {"covers": ["a(1)"], "supersedes": True})], True),
        ([("save.called", "s", {"covers": ["b(1)"], "supersedes": True})], False),
    ],
)
def test_a_save_promises_what_it_covers_when_the_process_dies(saves, promised):
    """An acknowledged save all before it or what it names; one that supersedes what it names, when it is called."""
    violation = judge(crashed_after(*saves))
    assert (violation is not None) == promised
