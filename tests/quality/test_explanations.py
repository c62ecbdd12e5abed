"""The deciding ordering of known races."""

from pathlib import Path

import pytest

from harness.adapters.loading import find_scenario
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.search.explain import explain_counterexample
from harness.search.portfolio import search

SCENARIOS = Path(__file__).parents[2] / "scenarios"
COMMIT = "done/save#1 commits (run 0)"


def explained(name, storage, **options):
    """Search, explain, and return the explanation."""
    target = scenario_target(find_scenario(name, folder=SCENARIOS), storage, **options)
    found = search(target, phases=make_phases(rung=target.rung), budget=200).counterexample
    return explain_counterexample(target, found).explanation


def pairs(explanation):
    """Return the names of the deciding orderings."""
    return [(ordering.first.name, ordering.second.name) for ordering in explanation.deciding.orderings]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "storage", "shapes", "first", "change"),
    [
        ("issue_9615", "remote", False, "order_flow/flaky raises RuntimeError", "+ hold order_flow/flaky/call"),
        ("issue_9615", "memory", True, "order_flow/flaky raises RuntimeError", "+ hold order_flow/flaky/call"),
        ("issue_9615_latency", "slow", False, "order_flow raises RuntimeError", "- hold order_flow/done/sleep(0.001)"),
    ],
)
def test_9615_fails_when_the_failure_comes_before_the_commit(name, storage, shapes, first, change):
    """Every sampled execution agrees, in both directions, and one change is enough to pass."""
    explanation = explained(name, storage, shapes=shapes)
    assert pairs(explanation) == [(first, COMMIT)]
    assert "scenarios/issue_9615" in explanation.deciding.orderings[0].first.where
    assert explanation.deciding.aimed >= 5
    assert not explanation.passing.fails
    assert explanation.changes == (change,)


@pytest.mark.slow
def test_9615_on_sqlite_fails_when_the_resume_reads_before_the_write_lands():
    """The write is not lost, only late."""
    explanation = explained("issue_9615", "sqlite", shapes=False)
    assert pairs(explanation) == [("issue_9615/job:select arrives", "order_flow/done/job:write arrives")]


@pytest.mark.slow
def test_a_hang_is_told_by_arrivals_and_not_by_what_they_lead_to():
    """Mere turns decide only where no event does."""
    explanation = explained("pause_hang", "memory", shapes=False)
    assert pairs(explanation) == [("buying_flow/approve/rules arrives", "buying_flow/produce/catalogue arrives")]
