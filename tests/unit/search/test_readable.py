"""Schedules in words: what they say, what they survive, and what is wrong with them."""

import asyncio
from pathlib import Path

import pytest

import harness
from harness.adapters.loading import find_scenario, scenarios_in
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.errors import UsageError
from harness.search.portfolio import search
from harness.search.readable import parse_readable, schedule_text
from harness.search.replay import replay_text
from harness.search.target import Target

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def program_of(*, unrelated=False, awaits=0):
    """Return a target: one task saves, another fails; with edits that do not concern the two."""
    log = []

    async def save():
        for _ in range(awaits):
            await asyncio.sleep(0)
        await harness.point("save#1.commit")
        log.append("saved")

    async def flaky():
        await harness.point("call")
        log.append("failed")
        raise RuntimeError

    async def other():
        await harness.point("other")

    async def program():
        log.clear()
        tasks = [save(), flaky()]
        if unrelated:
            tasks.insert(1, other())
        await asyncio.gather(*tasks, return_exceptions=True)
        return tuple(log)

    return Target("program", program)


def order(text, **edits):
    """Return what happened under a schedule in words."""
    return replay_text(program_of(**edits), text).execution.ending.value


def test_a_hold_waits_until_the_others_have_nothing_left():
    """And without one the oldest op goes first."""
    assert order("default order") == ("saved", "failed")
    assert order("hold save/save#1.commit") == ("failed", "saved")
    assert order("hold save#1.commit until flaky raises") == ("failed", "saved")


def test_a_hold_ends_with_what_it_waits_for():
    """Once the other op has arrived, the held one is in turn again."""
    assert order("hold save#1.commit until call arrives") == ("failed", "saved")
    assert order("let in call early") == ("failed", "saved")


def test_a_program_that_the_search_makes_up_is_chosen_by_name():
    """In any order of the clauses."""

    async def program():
        loop = asyncio.get_running_loop()
        kinds, outcomes = ("step", "gather", "seq"), ("success", "failure")
        kind = loop.choose("program", kinds, subject="kind of s1")
        return kinds[kind], outcomes[loop.choose("program", outcomes, subject="outcome of s3")]

    text = "the program's outcome of s3 is failure; the program's kind of s1 is seq"
    execution = replay_text(Target("program", program), text).execution
    assert execution.ending.value == ("seq", "failure")
    assert schedule_text(execution.schedule.decisions) == "; ".join(reversed(text.split("; ")))


@pytest.mark.parametrize("edits", [{"unrelated": True}, {"awaits": 3}, {"unrelated": True, "awaits": 1}])
def test_it_survives_edits_elsewhere(edits):
    """More awaits, an unrelated task."""
    assert order("hold save#1.commit until flaky raises", **edits) == ("failed", "saved")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hold save#1.comit", "nothing is called 'save#1.comit' here; nearest: save/save#1.commit"),
        ("hold save#1.commit until flakey raises", "nothing is called 'flakey raises' here; nearest: flaky raises"),
        ("hold", "no clause of a schedule: 'hold'"),
        ("run 0 crashed at moment 3", "nothing is called 'run' here"),
    ],
)
def test_what_names_nothing_is_an_error_with_the_nearest_names(text, message):
    """One line."""
    with pytest.raises(UsageError) as caught:
        order(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "storage", "options", "text"),
    [
        ("issue_9615", "sqlite", {"shapes": False}, "hold order_flow/done/job:write"),
        ("issue_9615", "remote", {"shapes": False}, "default order"),
        ("issue_9615", "memory", {"shapes": True}, "save waits create-task"),
        ("issue_9615_latency", "slow", {"shapes": False}, "hold order_flow/done/sleep(0.001)"),
        ("issue_9615_yield", "yielding", {}, "hold order_flow/done (2nd)"),
    ],
)
def test_what_a_search_prints_executes_to_the_same_failure(name, storage, options, text):
    """The words and the token are the same schedule."""
    target = scenario_target(find_scenario(name, folder=SCENARIOS), storage, **options)
    found = search(target, phases=make_phases(rung=target.rung), budget=100).counterexample
    assert found.text == text
    again = replay_text(target, found.text).execution
    assert again.schedule.turns == found.execution.schedule.turns
    assert [violation.message for violation in again.violations] == [found.violation.message]


@pytest.mark.parametrize(("storage", "shapes"), [("remote", False), ("cosmos", False), ("memory", True)])
def test_the_commit_of_a_save_is_held_on_any_storage_that_waits(storage, shapes):
    """By the op that the storage calls otherwise, and by an await shape where its save waits for nothing."""
    target = scenario_target(find_scenario("issue_9615", folder=SCENARIOS), storage, shapes=shapes)
    execution = replay_text(target, "hold done/save#1.commit until flaky raises").execution
    assert [violation.oracle for violation in execution.violations] == ["completed_steps_restored"]
    assert execution.violations[0].message.endswith("its done/save#1 was cancelled before its commit (turn 10)")


def test_a_misspelt_commit_is_told_by_the_name_of_its_save():
    """Though the storage's op has another name."""
    target = scenario_target(find_scenario("issue_9615", folder=SCENARIOS), "remote", shapes=False)
    with pytest.raises(UsageError, match=r"nearest: done/save#1\.commit"):
        replay_text(target, "hold done/save#1.comit until flaky raises")


EDITS = {
    "nothing": [],
    "awaits": [
        ('    return f"charged', '    await asyncio.sleep(0)\n    return f"charged'),
        ('    await harness.point("call")\n', '    await asyncio.sleep(0)\n    await harness.point("call")\n'),
    ],
    "names": [("order: int", "number: int"), ("{order}", "{number}"), ("(order)", "(number)")],
    "a task": [
        (
            "    return list(",
            "    other = asyncio.create_task(asyncio.sleep(1))\n    await asyncio.sleep(0)\n    return list(",
        )
    ],
    "a step": [
        ("@workflow", '@step\nasync def mail(order: int) -> str:\n    await harness.point("mail")\n\n\n@workflow'),
        ("flaky(order)))", "flaky(order), mail(order)))"),
    ],
}


@pytest.mark.parametrize("edit", EDITS)
def test_words_survive_edits_of_a_workflow(edit, tmp_path):
    """What a token would not: the same words fail in the same way."""
    text = (SCENARIOS / "issue_9615.py").read_text()
    for old, new in EDITS[edit]:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / f"edited_{edit.replace(' ', '_')}.py").write_text(text)
    (scenario,) = scenarios_in(next(tmp_path.iterdir()))
    words = "save waits latency-before; hold done/save#1.commit until flaky raises"
    execution = replay_text(scenario_target(scenario, "memory", shapes=True), words).execution
    assert [violation.oracle for violation in execution.violations] == ["completed_steps_restored"]


def test_clauses_are_separated_by_semicolons():
    """Blanks do not matter."""
    kinds = [
        (clause.kind, clause.op, clause.ordinal, clause.until)
        for clause in parse_readable(
            " hold a/b (2nd) until c raises ;; let in d early; save waits shield; sets of tasks in order 3 "
        ).clauses
    ]
    assert kinds == [
        ("hold", "a/b", 2, "c raises"),
        ("hold", "d", 1, ""),
        ("shape", "save", 1, ""),
        ("order", "", 1, ""),
    ]
