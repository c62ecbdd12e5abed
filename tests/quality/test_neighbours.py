"""The bugs of other frameworks are found within a budget, with an exact answer, where the framework is installed."""

from pathlib import Path

import pytest

from harness.adapters.loading import load_scenarios, missing_requirement
from harness.adapters.portfolio import make_phases
from harness.adapters.pytest_scenarios import installed_version, is_affected
from harness.adapters.targets import scenario_target
from harness.search.portfolio import search

SCENARIOS = Path(__file__).parents[2] / "scenarios"
pytestmark = pytest.mark.slow


def look(name, storage, *, budget=None, **options):
    """Search a neighbour's scenario; skip it where its framework, or an affected release of it, is not installed."""
    (scenario,) = load_scenarios(str(SCENARIOS / f"{name}.py"))
    if missing := missing_requirement(scenario):
        pytest.skip(f"{missing}: `make neighbours`")
    if not is_affected(scenario, installed_version(scenario.package)):
        pytest.skip(f"the installed {scenario.package} is not affected")
    target = scenario_target(scenario, storage, **options)
    return search(target, phases=make_phases(rung=target.rung), budget=budget or scenario.budget)


def found(name, storage):
    """Return what was found as (oracle, rung, options); at most 50 executions and 10 seconds."""
    result = look(name, storage)
    counterexample = result.counterexample
    assert counterexample is not None
    assert counterexample.replays
    assert counterexample.found_after <= 50
    assert result.seconds < 10
    decisions = counterexample.execution.schedule.decisions
    return counterexample.violation.oracle, counterexample.rung.label, [decision.option for decision in decisions]


@pytest.mark.parametrize("storage", ["remote", "sqlite"])
def test_langgraph_8039_breaks_with_one_crash(storage):
    """While the writes of the node are on their way, and its checkpoint is begun."""
    oracle, rung, (option,) = found("langgraph_8039", storage)
    assert (oracle, rung, option.partition(" at ")[0]) == ("completed_steps_restored", "exact", "run 0: crashed")


@pytest.mark.parametrize("storage", ["memory", "remote", "sqlite"])
def test_langgraph_8039_is_gone_when_the_writes_come_first(storage):
    """With the barrier of the issue no crash breaks the promise."""
    assert look("langgraph_8039", storage, budget=300, fix="writes-first").verdict == "none-found"


def test_openai_agents_1658_breaks_in_default_order():
    """With a session that awaits something before it writes."""
    assert found("openai_agents_1658", "remote") == ("completed_steps_restored", "exact", [])


def test_openai_agents_1658_breaks_on_sqlite_with_one_hold():
    """The write is in the pool while the next run reads."""
    oracle, rung, (option,) = found("openai_agents_1658", "sqlite")
    assert (oracle, rung) == ("completed_steps_restored", "exact")
    assert option.endswith("job:partial: hold")


def test_openai_agents_1658_holds_in_memory():
    """A save that never yields cannot be cancelled."""
    assert look("openai_agents_1658", "memory").verdict == "none-found"


def test_pydantic_graph_1684_breaks_in_default_order():
    """A resumed run is enough."""
    assert found("pydantic_graph_1684", "full-state") == ("snapshot_immutable", "exact", [])
