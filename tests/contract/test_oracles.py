"""Every registered oracle on good and on bad journals."""

import importlib
import itertools
import re

import pytest

from harness.adapters.targets import judging, load_oracles, needs_of
from harness.model.errors import UsageError
from harness.model.outcome import Event
from harness.model.registry import plugin_names


def started(run, *, resumes=None, checkpoint=None, **data):
    """Begin a run of ``flow``; on an instance of its own unless said otherwise."""
    return ("run.started", run, "flow", {"instance": run, "resumes": resumes, "checkpoint": checkpoint, **data})


def ended(run, how="returned", *, values=(), error=None, left=()):
    """End a run."""
    return ("run.ended", run, "flow", {"how": how, "values": list(values), "error": error, "left": list(left)})


def step(kind, run, call="a(1)", value="'x'"):
    """Something of a step."""
    return (f"step.{kind}", run, call.partition("(")[0], {"call": call, "value": value})


def save(run, checkpoint, previous=None, *, steps=(), kinds=("called", "committed"), digest=None, requests=()):
    """The events of one save."""
    data = {
        "checkpoint": checkpoint,
        "previous": previous,
        "timestamp": checkpoint,
        "steps": list(steps),
        "requests": list(requests),
        "digest": digest,
    }
    return [(f"save.{kind}", run, f"save of {checkpoint}", data) for kind in kinds]


def latest(checkpoint, *, requests=(), **data):
    """``get_latest`` answered."""
    return ("storage.latest", 0, "", {"checkpoint": checkpoint, "requests": list(requests), "workflow": "flow", **data})


def state(newest, *checkpoints):
    """The storage at the end of the program; checkpoints: names, or pairs of a name and more."""
    found = [
        {"checkpoint": item, "requests": []} if isinstance(item, str) else {"requests": [], **item}
        for item in checkpoints
    ]
    return ("storage.state", 0, "", {"checkpoints": found, "latest": {"flow": newest}})


def reference(message, *values, error=None, requests=()):
    """How a message ends on an instance of its own."""
    data = {"message": message, "values": list(values), "error": error, "requests": list(requests)}
    return ("run.reference", 1_000_000, "flow", data)


def journal(entries):
    """Return events; turns count up. entries: tuples, and lists of tuples."""
    flat = [entry for item in entries for entry in (item if isinstance(item, list) else [item])]
    return [
        Event(turn, turn * 1e-6, kind, run, subject, data) for turn, (kind, run, subject, data) in enumerate(flat, 1)
    ]


DONE = [started(0), step("invoked", 0), step("completed", 0), ended(0)]
CHAIN = [started(0), save(0, "r"), save(0, "s", "r"), ended(0)]

GOOD = {
    "completed_steps_restored": {
        "restored": [*DONE, started(1, resumes=0), step("restored", 1)],
        "other arguments": [*DONE, started(1, resumes=0), step("invoked", 1, "a(2)")],
        "a new run, not a resume": [*DONE, started(1), step("invoked", 1)],
        "never completed": [
            started(0),
            step("invoked", 0),
            step("failed", 0),
            ended(0),
            started(1, resumes=0),
            step("invoked", 1),
        ],
        "completed only after the end": [
            started(0),
            step("invoked", 0),
            ended(0),
            step("completed", 0),
            started(1, resumes=0),
            step("invoked", 1),
        ],
        "a second equal call is new": [*DONE, started(1, resumes=0), step("restored", 1), step("invoked", 1)],
        "an orphan of the first run": [*DONE, started(1, resumes=0), step("invoked", 0)],
        "from another checkpoint": [*DONE, started(1, resumes=0, latest=False), step("invoked", 1)],
        "a crash before the save was acknowledged": [
            started(0),
            step("completed", 0),
            save(0, "r"),
            ended(0, "crashed"),
            started(1, resumes=0),
            step("invoked", 1),
        ],
    },
    "replay_identity": {
        "its own value": [*DONE, started(1, resumes=0), step("restored", 1)],
        "equal calls may exchange their values": [
            started(0),
            step("completed", 0, value="1"),
            step("completed", 0, value="2"),
            ended(0),
            started(1, resumes=0),
            step("restored", 1, value="2"),
            step("restored", 1, value="1"),
        ],
        "a value with an address": [*DONE, started(1, resumes=0), step("restored", 1, value="<object at 0x7f>")],
        "two runs later": [*DONE, started(1, resumes=0), ended(1), started(2, resumes=1), step("restored", 2)],
        "written by a call that then failed": [
            started(0),
            ("step.failed", 0, "a", {"call": "a(1)", "value": "CancelledError()", "wrote": "'x'"}),
            ended(0, "cancelled"),
            started(1, resumes=0),
            step("restored", 1),
        ],
    },
    "no_zombies": {
        "nothing is left": [started(0), step("invoked", 0), step("completed", 0), ended(0)],
        "the next run works": [*DONE, started(1), step("invoked", 1)],
        "a dropped stream is finalized": [
            started(0),
            ended(0, "dropped", left=["flow"]),
            *save(0, "r", kinds=["cancelled"]),
        ],
        "the cancellation of a save is no work": [
            started(0),
            ended(0, "cancelled"),
            *save(0, "r", kinds=["cancelled"]),
        ],
    },
    "linear_lineage": {
        "a chain": [*CHAIN, state("s", "r", "s")],
        "a resumed chain": [
            *CHAIN,
            started(1, resumes=0, checkpoint="s"),
            save(1, "t", "s"),
            state("t", "r", "s", "t"),
        ],
        "a second message, a second root": [*CHAIN, started(1), save(1, "t"), state("t", "r", "s", "t")],
        "a fork on purpose": [*CHAIN, started(1, resumes=0, checkpoint="r", latest=False), save(1, "t", "r")],
        "two instances": [
            *CHAIN,
            started(1, resumes=0, checkpoint="s", twin=True),
            started(2, resumes=0, checkpoint="s", twin=True),
            save(1, "t", "s"),
            save(2, "u", "s"),
        ],
        "written twice": [*CHAIN, save(0, "s", "r")],
        "a resume from a save that was cancelled after its effect": [
            started(0),
            save(0, "r", kinds=["called"]),
            ended(0, "cancelled"),
            latest("r"),
            started(1, resumes=0, checkpoint="r"),
            save(1, "s", "r"),
            state("s", "r", "s"),
        ],
    },
    "latest_is_maximal": {
        "the last of a chain": [*CHAIN, latest("s"), state("s", "r", "s")],
        "committed after the question": [started(0), save(0, "r"), save(0, "s", "r"), latest("r", commits=1)],
        "no checkpoint": [started(0), ended(0), latest(None)],
        "another run": [*CHAIN, started(1), save(1, "t", steps=["a"]), latest("s")],
        "a fork on purpose": [
            *CHAIN,
            started(1, resumes=0, checkpoint="r", latest=False),
            save(1, "t", "s"),
            latest("s"),
        ],
    },
    "run_isolation": {
        "as on an instance of its own": [
            started(0, message="7"),
            ended(0, "failed"),
            started(1, instance=0, message="8"),
            ended(1, values=["'b'", "'a'"]),
            reference("8", "'a'", "'b'"),
        ],
        "another instance": [started(0, message="7"), ended(0, values=["'a'"]), reference("7", "'b'")],
        "it fails on an instance of its own too": [
            started(0, message="7"),
            ended(0),
            started(1, instance=0, message="7"),
            ended(1),
            reference("7", error="ValueError()"),
        ],
        "resumed from its own checkpoint": [*CHAIN, started(1, resumes=0, checkpoint="s")],
        "resumed from one of a run that it continues": [
            *CHAIN,
            started(1, resumes=0, checkpoint="s"),
            ended(1),
            started(2, resumes=1, checkpoint="s"),
        ],
    },
    "snapshot_immutable": {
        "unchanged": [
            started(0),
            save(0, "r", digest="1"),
            ("storage.loaded", 0, "", {"checkpoint": "r", "digest": "1"}),
        ],
        "unchanged at the end": [started(0), save(0, "r", digest="1"), state("r", {"checkpoint": "r", "digest": "1"})],
        "not known": [("storage.loaded", 0, "", {"checkpoint": "r", "digest": "1"})],
        "a save of no checkpoint": [
            started(0),
            ("save.called", 0, "writes", {"anchor": "r"}),
            save(0, "r", digest="1"),
        ],
    },
    "guard_released": {
        "one after the other": [*DONE, started(1, instance=0), step("invoked", 1), ended(1)],
        "refused while the first goes on": [
            started(0),
            step("invoked", 0),
            started(1, instance=0),
            ended(1, "failed", error="already running"),
            ended(0),
        ],
        "refused right after a dropped stream": [
            started(0),
            ended(0, "dropped"),
            started(1, instance=0),
            ended(1, "failed", error="already running"),
        ],
        "two instances at once": [started(0), step("invoked", 0), started(1), step("invoked", 1), ended(0), ended(1)],
    },
    "request_durable": {
        "pending": [started(0), ("run.request", 0, "flow", {"request": "q"}), ended(0), latest("r", requests=["q"])],
        "answered": [
            started(0),
            ("run.request", 0, "flow", {"request": "q"}),
            ended(0),
            latest("r", requests=["q"]),
            started(1, resumes=0, answers=["q"]),
            ended(1),
            latest("s"),
        ],
        "withdrawn": [
            started(0),
            ("run.request", 0, "flow", {"request": "q"}),
            ("run.withdrawn", 0, "flow", {"request": "q"}),
            ended(0),
            latest("r"),
        ],
        "the run goes on": [started(0), ("run.request", 0, "flow", {"request": "q"}), latest("r")],
        "another workflow": [
            started(0),
            ("run.request", 0, "flow", {"request": "q"}),
            ended(0),
            latest("r", workflow="other"),
        ],
        "of one of two instances that resumed at once": [
            started(0, twin=True),
            ("run.request", 0, "flow", {"request": "q"}),
            ended(0),
            latest("r", requests=["of the other"]),
        ],
    },
    "decision_stable": {
        "the same way": [*DONE[:3], step("returned", 0), ended(0), started(1, resumes=0), step("returned", 1)],
        "executed again after its own failure": [
            started(0),
            step("invoked", 0),
            step("failed", 0),
            step("raised", 0),
            ended(0),
            started(1, resumes=0),
            step("returned", 1),
        ],
        "another run": [*DONE[:3], step("raised", 0), ended(0), started(1), step("returned", 1)],
    },
    "progress": {"ended": DONE, "nothing": [], "crashed": [started(0), ended(0, "crashed")]},
    "restore_complete": {
        "the same outputs": [
            started(0, message="7"),
            save(0, "r"),
            ended(0),
            started(1, resumes=0, checkpoint="r", message="7"),
            ended(1, values=["'a'"]),
            reference("7", "'a'"),
        ],
        "what was put out before is not put out again": [
            started(0, message="7"),
            ("executor.output", 0, "e", {"value": "'a'"}),
            save(0, "r"),
            ended(0),
            started(1, resumes=0, checkpoint="r", message="7"),
            ended(1, values=["'b'"]),
            reference("7", "'a'", "'b'"),
        ],
        "it asks a human": [
            started(0, message="7"),
            save(0, "r"),
            ("run.request", 0, "flow", {"request": "q"}),
            ended(0),
            started(1, resumes=0, checkpoint="r", message="7"),
            ended(1),
            reference("7", "'a'"),
        ],
        "a save was made to raise": [
            started(0, message="7"),
            save(0, "r"),
            ended(0),
            started(1, resumes=0, checkpoint="r", message="7"),
            save(1, "s", "r", kinds=["called", "raised"]),
            ended(1, "failed", error="StorageFault()"),
            reference("7", "'a'"),
        ],
    },
    "ownership": {
        "its own": [started(0), ("task.cancelled", 0, "flow/a", {"owner": 0})],
        "nothing": [started(0), ended(0)],
    },
}

BAD = {
    "completed_steps_restored": {
        "executed again": (
            [*DONE, started(1, resumes=0), step("invoked", 1)],
            "a(1) completed in run 0 (turn 3) and was executed again in run 1 (turn 6)",
        ),
        "two runs later": (
            [*DONE, started(1, resumes=0), step("restored", 1), ended(1), started(2, resumes=1), step("invoked", 2)],
            "a(1) completed in run 0 (turn 3) and was executed again in run 2 (turn 9)",
        ),
        "the other of two calls": (
            [*DONE, started(1, resumes=0), step("restored", 1, "a(2)"), step("invoked", 1)],
            "a(1) completed in run 0 (turn 3) and was executed again in run 1 (turn 7)",
        ),
        "an executor": (
            [
                started(0),
                ("executor.invoked", 0, "e", {"call": "e(1)"}),
                ("executor.completed", 0, "e", {"call": "e(1)"}),
                ended(0),
                started(1, resumes=0),
                ("executor.invoked", 1, "e", {"call": "e(1)"}),
            ],
            "e(1) completed in run 0 (turn 3) and was executed again in run 1 (turn 6)",
        ),
        "a crash after the save was acknowledged": (
            [
                *DONE[:3],
                save(0, "r", kinds=["called", "committed", "acknowledged"]),
                ended(0, "crashed"),
                started(1, resumes=0),
                step("invoked", 1),
            ],
            "a(1) completed in run 0 (turn 3) and was executed again in run 1 (turn 9)",
        ),
    },
    "replay_identity": {
        "of another call": (
            [
                started(0),
                step("completed", 0, "a(1)", "1"),
                step("completed", 0, "a(2)", "2"),
                ended(0),
                started(1, resumes=0),
                step("restored", 1, "a(1)", "2"),
            ],
            "run 1 replayed 2 for a(1) (turn 6), which produced 1",
        ),
        "more often than produced": (
            [*DONE, started(1, resumes=0), step("restored", 1), step("restored", 1)],
            "run 1 replayed 'x' for a(1) (turn 7), which produced 'x'",
        ),
        "never produced": (
            [started(0), ended(0), started(1, resumes=0), step("restored", 1)],
            "run 1 replayed 'x' for a(1) (turn 4), which produced nothing",
        ),
    },
    "no_zombies": {
        "a step goes on": (
            [started(0), step("invoked", 0), ended(0), step("completed", 0)],
            "run 0 ended (returned), and then came step.completed a(1)",
        ),
        "a save lands": (
            [started(0), ended(0, "failed"), *save(0, "r", kinds=["committed"])],
            "run 0 ended (failed), and then came save.committed save of r",
        ),
        "an effect": (
            [started(0), ended(0, "dropped"), ("effect", 0, "mail", {})],
            "run 0 ended (dropped), and then came effect mail",
        ),
        "a task is left": (
            [started(0), ended(0, left=["flow/slow"])],
            "run 0 ended (returned) and left tasks alive: flow/slow",
        ),
    },
    "linear_lineage": {
        "two roots": (
            [started(0), save(0, "r"), save(0, "s")],
            "run 0 has two roots: save of r of run 0 and save of s of run 0",
        ),
        "a root after a resume": (
            [*CHAIN, started(1, resumes=0, checkpoint="s"), save(1, "t")],
            "save of t of run 1 has no parent, though run 1 resumed from s",
        ),
        "two children": (
            [*CHAIN, save(0, "t", "r")],
            "save of s of run 0 and save of t of run 0 are both children of save of r of run 0",
        ),
        "a child that only the storage knows": (
            [
                started(0),
                save(0, "r"),
                save(0, "s", "r", kinds=["called"]),
                save(0, "t", "r"),
                state("t", "r", "s", "t"),
            ],
            "save of t of run 0 and save of s of run 0 are both children of save of r of run 0",
        ),
        "a parent that was never stored": (
            [started(0), save(0, "s", "r")],
            "save of s of run 0 names the parent r, which was never stored",
        ),
        "the latest is not the end": (
            [*CHAIN, state("r", "r", "s")],
            "the latest checkpoint save of r of run 0 does not reach its child save of s of run 0",
        ),
    },
    "latest_is_maximal": {
        "the first of a chain": (
            [*CHAIN, latest("r")],
            "the latest checkpoint is save of r of run 0 (0 steps, r), which save of s of run 0 extends (0 steps, s)",
        ),
        "another one holds more steps": (
            [started(0), save(0, "r", steps=["a", "b"]), save(0, "s", steps=["a"]), ended(0), state("s", "r", "s")],
            "the latest checkpoint is save of s of run 0 (1 steps, s), which save of r of run 0 extends (2 steps, r)",
        ),
    },
    "run_isolation": {
        "other outputs": (
            [
                started(0, message="7"),
                ended(0, "failed"),
                started(1, instance=0, message="8"),
                ended(1, values=["'7 and 8'"]),
                reference("8", "'8'"),
            ],
            "run 1 on a used instance returned '7 and 8'; on an instance of its own the same message returns '8'",
        ),
        "another run's checkpoint": (
            [*CHAIN, started(1), ended(1), started(2, resumes=1, checkpoint="s")],
            "run 2 resumes run 1 from save of s, which run 0 saved",
        ),
    },
    "snapshot_immutable": {
        "changed when it is loaded": (
            [started(0), save(0, "r", digest="1"), ("storage.loaded", 0, "", {"checkpoint": "r", "digest": "2"})],
            "the checkpoint of save of r (run 0, turn 2) is not what was passed to save (digest 1, now 2)",
        ),
        "changed at the end": (
            [started(0), save(0, "r", digest="1"), state("r", {"checkpoint": "r", "digest": "2"})],
            "the checkpoint of save of r (run 0, turn 2) is not what was passed to save (digest 1, now 2)",
        ),
    },
    "guard_released": {
        "refused after the end": (
            [*DONE, started(1, instance=0), ended(1, "failed", error="already running")],
            "run 1 was refused after every run on its instance had ended: already running",
        ),
        "refused after a dropped stream and a pause": (
            [
                started(0),
                ended(0, "dropped"),
                ("quiet", 0, "", {}),
                started(1, instance=0),
                ended(1, "failed", error="already running"),
            ],
            "run 1 was refused after every run on its instance had ended: already running",
        ),
        "two at once": (
            [started(0), started(1, instance=0), step("invoked", 0), step("invoked", 1), ended(0), ended(1)],
            "runs 0 and 1 are active on one instance at the same time",
        ),
    },
    "request_durable": {
        "forgotten": (
            [
                started(0),
                ("run.request", 0, "flow", {"request": "q"}),
                ended(0, "cancelled"),
                latest("r", requests=["p"]),
            ],
            "the caller of run 0 saw the request 'q' (turn 2), and the latest checkpoint does not hold it, but p",
        ),
        "no checkpoint at all": (
            [started(0), ("run.request", 0, "flow", {"request": "q"}), ended(0, "closed"), latest(None)],
            "the caller of run 0 saw the request 'q' (turn 2), and the latest checkpoint does not hold it, but none",
        ),
        "at the end of the program": (
            [started(0), ("run.request", 0, "flow", {"request": "q"}), save(0, "r"), ended(0), state("r", "r")],
            "the caller of run 0 saw the request 'q' (turn 2), and the latest checkpoint does not hold it, but none",
        ),
    },
    "decision_stable": {
        "raised, then returned": (
            [*DONE[:3], step("raised", 0, value="E()"), ended(0), started(1, resumes=0), step("returned", 1)],
            "a(1) completed and raised E() to the body of run 0 (turn 4); on replay in run 1 it returned 'x'",
        ),
        "the second of equal calls": (
            [
                *DONE[:3],
                step("returned", 0),
                step("completed", 0),
                step("raised", 0, value="E()"),
                ended(0),
                started(1, resumes=0),
                step("returned", 1),
                step("returned", 1),
            ],
            "a(1) completed and raised E() to the body of run 0 (turn 6); on replay in run 1 it returned 'x'",
        ),
    },
    "progress": {
        "never ended": ([started(0), step("invoked", 0)], "run 0 of flow began (turn 1) and never ended"),
        "the resume never ended": ([*DONE, started(1, resumes=0)], "run 1 of flow began (turn 5) and never ended"),
    },
    "restore_complete": {
        "the join never fires": (
            [
                started(0, message="7"),
                save(0, "r"),
                ended(0),
                started(1, resumes=0, checkpoint="r", message="7"),
                ended(1),
                reference("7", "'a'"),
            ],
            "run 1, resumed from a checkpoint, ended with nothing; without a resume the same message ends with 'a'",
        ),
        "the resume fails": (
            [
                started(0, message="7"),
                save(0, "r"),
                ended(0),
                started(1, resumes=0, checkpoint="r", message="7"),
                ended(1, "failed", error="KeyError('order')"),
                reference("7", "'a'"),
            ],
            "run 1 failed on resume: KeyError('order')",
        ),
    },
    "ownership": {
        "of another run": (
            [started(0), ("task.cancelled", 0, "other/a", {"owner": 1})],
            "run 0 cancelled the task other/a, which belongs to run 1",
        ),
        "of nobody": (
            [started(0), ("task.cancelled", 0, "mine", {"owner": None})],
            "run 0 cancelled the task mine, which belongs to no run",
        ),
    },
}


def cases(table):
    """Return (oracle, case) pairs and their ids."""
    pairs = [(oracle.replace("_", "-"), case) for oracle, found in table.items() for case in found.values()]
    ids = [f"{oracle.replace('_', '-')}: {name}" for oracle, found in table.items() for name in found]
    return {"argvalues": pairs, "ids": ids}


@pytest.mark.parametrize(("oracle", "entries"), **cases(GOOD))
def test_an_oracle_passes_good_journals(oracle, entries):
    """No violation."""
    (judge,) = load_oracles([oracle])
    assert judge(journal(entries)) is None


@pytest.mark.parametrize(("oracle", "case"), **cases(BAD))
def test_an_oracle_says_what_is_wrong_with_bad_journals(oracle, case):
    """The violation has the oracle's name, one sentence, and a turn of the journal."""
    entries, message = case
    events = journal(entries)
    (judge,) = load_oracles([oracle])
    violation = judge(events)
    assert violation is not None
    assert (violation.oracle, violation.message) == (oracle.replace("-", "_"), message)
    assert 1 <= violation.turn <= len(events)


@pytest.mark.parametrize("oracle", plugin_names("harness.oracles"))
def test_every_registered_oracle_has_its_journals_and_its_statement(oracle):
    """Good ones, bad ones, and a docstring that says what is judged."""
    tables = [{name.replace("_", "-"): found for name, found in table.items()} for table in (GOOD, BAD)]
    assert all(len(table.get(oracle, ())) >= 2 for table in tables)
    (judge,) = load_oracles([oracle])
    assert judge.__doc__.startswith("Judge: ")
    assert judge([]) is None


def test_an_oracle_reads_a_journal_and_nothing_else():
    """Judging twice gives the same, and changes nothing."""
    for oracle, found in BAD.items():
        for entries, _ in found.values():
            events = journal(entries)
            (judge,) = load_oracles([oracle.replace("_", "-")])
            before = repr(events)
            assert judge(events) == judge(tuple(events))
            assert repr(events) == before


def test_all_stands_for_every_oracle_but_those_that_are_switched_off():
    """In the order of their names; what they need is united."""
    known = plugin_names("harness.oracles")
    assert judging(["all"]) == known
    assert judging(["all"], without={"no_zombies": "they are welcome"}) == tuple(n for n in known if n != "no-zombies")
    assert judging(["no_zombies", "no-zombies"]) == ("no-zombies",)
    assert needs_of(known) == ("cancellations", "contents", "decisions", "reference", "storage")
    assert importlib.import_module("harness.oracles.no_zombies").PLUGIN is load_oracles(["no-zombies"])[0]


@pytest.mark.parametrize("arguments", [{"names": ["no-zombie"]}, {"names": [], "without": {"no-zombie": "why not"}}])
def test_an_unknown_oracle_is_one_line(arguments):
    """With the nearest name."""
    with pytest.raises(UsageError, match=r"^unknown oracle 'no-zombie'; did you mean 'no-zombies'\? \(known: .*\)$"):
        judging(arguments.pop("names"), **arguments)


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
    (judge,) = load_oracles(["completed-steps-restored"])
    violation = judge(crashed_after(*saves))
    assert (violation is not None) == promised


# -- what a fingerprint keeps of a journal ---------------------------------------------------------------

LETTERS = [
    step("completed", 0),
    step("invoked", 0),
    ended(0),
    ended(0, "crashed"),
    save(0, "s", kinds=("called",)),
    save(0, "s", kinds=("acknowledged",)),
    started(1, resumes=0),
    started(1, resumes=0, latest=False),
    step("restored", 1),
    step("invoked", 1),
]


def summarizes(oracle):
    """Return the function of an oracle that summarizes a journal, or None."""
    return getattr(importlib.import_module(f"harness.oracles.{oracle.replace('-', '_')}"), "summarize", None)


@pytest.mark.parametrize("oracle", [name for name in plugin_names("harness.oracles") if summarizes(name)])
def test_journals_with_one_summary_have_one_future(oracle):
    """What a fingerprint keeps of a journal decides every later judgement, here of all futures of two events."""
    (judge,) = load_oracles([oracle])
    summarize = summarizes(oracle)
    futures = {}

    def told(events):
        violation = judge(events)
        return "" if violation is None else re.sub(r" \(turn \d+\)", "", violation.message)

    for prefix in itertools.product(LETTERS, repeat=3):
        # A save that is under way from the beginning: no journal has a save that is acknowledged and was not called.
        begun = [started(0), save(0, "s", kinds=("called",)), *prefix]
        verdicts = [told(journal([*begun, *suffix])) for suffix in itertools.product(LETTERS, repeat=2)]
        futures.setdefault(repr(summarize(journal(begun))), set()).add(tuple(verdicts))
    assert all(len(seen) == 1 for seen in futures.values())
    assert len(futures) < len(LETTERS) ** 3
