"""#9615 is found within a budget, shrunk to an exact answer, and gone with either fix."""

import statistics
from pathlib import Path

import pytest

from harness.adapters.loading import find_scenario
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.search.portfolio import search

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def look(name, storage, *, budget=500, seed=0, scheduler="portfolio", **options):
    """Search one scenario on one storage."""
    target = scenario_target(find_scenario(name, folder=SCENARIOS), storage, **options)
    return search(target, phases=make_phases(scheduler, rung=target.rung, seed=seed), budget=budget)


def counterexample(result):
    """Return what was found as (oracle, rung, decisions, found after)."""
    found = result.counterexample
    assert found is not None
    assert found.replays
    decisions = [(decision.kind, decision.option) for decision in found.execution.schedule.decisions]
    return found.violation.oracle, found.rung.label, decisions, found.found_after


def test_remote_storage_breaks_in_default_order():
    """At most three executions, rung exact, no deviation."""
    assert counterexample(look("issue_9615", "remote")) == ("completed_steps_restored", "exact", [], 1)


def test_sqlite_storage_breaks_with_one_hold():
    """The write job is held until the resumed run has read."""
    decisions = [("hold", "order_flow/done/job:write: hold")]
    oracle, rung, found, after = counterexample(look("issue_9615", "sqlite", shapes=False))
    assert (oracle, rung, found) == ("completed_steps_restored", "exact", decisions)
    assert after <= 3


@pytest.mark.slow
def test_cosmos_storage_breaks_in_default_order():
    """Its save awaits the container before it upserts, and is cancelled there."""
    pytest.importorskip("agent_framework_azure_cosmos")
    result = look("issue_9615", "cosmos", shapes=False)
    assert counterexample(result) == ("completed_steps_restored", "exact", [], 1)
    (ended,) = [event for event in result.counterexample.execution.journal if event.kind == "save.cancelled"]
    assert ended.data["committed"] is False


def test_memory_storage_as_it_is_holds():
    """A save that never yields cannot be cancelled."""
    assert look("issue_9615", "memory", shapes=False).verdict == "none-found"


@pytest.mark.slow
def test_file_storage_as_it_is_holds():
    """It finishes its own write when it is cancelled."""
    assert look("issue_9615", "file", shapes=False).verdict == "none-found"


def test_memory_storage_breaks_in_another_await_shape():
    """Found within 50 executions, with one deviation."""
    oracle, rung, decisions, after = counterexample(look("issue_9615", "memory", shapes=True))
    assert (oracle, rung, len(decisions)) == ("completed_steps_restored", "exact", 1)
    assert after <= 50


def test_sleeps_stand_for_work_from_latency_on():
    """Found within 5 executions, both sleeps named; not at rung exact."""
    result = look("issue_9615_latency", "slow")
    oracle, rung, decisions, after = counterexample(result)
    assert (oracle, rung, decisions) == (
        "completed_steps_restored",
        "latency",
        [("hold", "order_flow/done/sleep(0.001): hold")],
    )
    assert after <= 5
    (pair,) = result.counterexample.execution.inversions
    assert [name.split(" at ")[0] for name in pair] == ["order_flow/flaky/sleep(0.005)", "order_flow/done/sleep(0.001)"]
    from harness import Rung

    assert look("issue_9615_latency", "slow", rung=Rung.EXACT, shapes=False).verdict == "none-found"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "median", "held"),
    [("issue_9615_yield", 10, "order_flow/done"), ("issue_9615_yield_twice", 20, "slow_order_flow/done")],
)
def test_one_yield_breaks_in_a_relaxed_order(name, median, held):
    """Shrunk to one hold for each of ten seeds."""
    found = [counterexample(look(name, "yielding", seed=seed)) for seed in range(10)]
    assert {(rung, tuple(decisions)) for _, rung, decisions, _ in found} == {("relaxed", (("hold", f"{held}: hold"),))}
    assert statistics.median(after for *_, after in found) <= median


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_hypothesis_alone_finds_and_shrinks_the_relaxed_order(seed):
    """Without the sweep it takes longer, and ends at the same single hold."""
    result = look("issue_9615_yield", "yielding", seed=seed, scheduler="hypothesis")
    assert counterexample(result)[2] == [("hold", "order_flow/done: hold")]


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["memory", "file", "remote", "sqlite", "cosmos"])
@pytest.mark.parametrize("fix", ["save-on-failure", "shielded-save"])
def test_either_fix_holds_in_every_await_shape(fix, storage):
    """500 executions find nothing."""
    if storage == "cosmos":
        pytest.importorskip("agent_framework_azure_cosmos")
    result = look("issue_9615", storage, fix=fix, budget=500)
    assert result.verdict == "none-found"
    assert result.executions >= 400


def test_a_fix_is_undone_after_the_search():
    """The installed framework is what it was."""
    assert look("issue_9615", "remote", fix="shielded-save", budget=20).verdict == "none-found"
    assert look("issue_9615", "remote", fix="save-on-failure", budget=20).verdict == "none-found"
    assert look("issue_9615", "remote", budget=20).verdict == "violation"
