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
    """Search, explain, and return the pair of names."""
    target = scenario_target(find_scenario(name, folder=SCENARIOS), storage, **options)
    found = search(target, phases=make_phases(rung=target.rung), budget=200).counterexample
    found = explain_counterexample(target, found)
    assert found.explained
    return found.deciding


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "storage", "shapes", "first"),
    [
        ("issue_9615", "remote", False, "order_flow/flaky raises RuntimeError"),
        ("issue_9615", "memory", True, "order_flow/flaky raises RuntimeError"),
        ("issue_9615_latency", "slow", False, "order_flow raises RuntimeError"),
    ],
)
def test_9615_fails_when_the_failure_comes_before_the_commit(name, storage, shapes, first):
    """Every sampled execution agrees, in both directions."""
    deciding = explained(name, storage, shapes=shapes)
    assert (deciding.first.name, deciding.second.name) == (first, COMMIT)
    assert "scenarios/issue_9615" in deciding.first.where
    assert deciding.failing >= 2
    assert deciding.passing >= 2


@pytest.mark.slow
def test_9615_on_sqlite_fails_when_the_resume_reads_before_the_write_lands():
    """The write is not lost, only late."""
    deciding = explained("issue_9615", "sqlite", shapes=False)
    assert deciding.second.name == COMMIT
    assert deciding.first.name == "flaky begins (run 1)"
