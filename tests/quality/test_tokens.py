"""Tokens recorded on one Python replay on every other.

``python -m tests.quality.test_tokens`` records them again, after a change of what a trace holds.
"""

import json
from pathlib import Path

import pytest

from harness.adapters.loading import find_scenario
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.schedule import parse_token
from harness.search.portfolio import search
from harness.search.replay import replay

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "data" / "tokens.json"
CASES = [
    ("issue_9615", "memory"),
    ("issue_9615", "file"),
    ("issue_9615", "remote"),
    ("issue_9615", "sqlite"),
    ("issue_9615", "cosmos"),
    ("issue_9615_latency", "slow"),
    ("issue_9615_yield", "yielding"),
    ("issue_9615_yield_twice", "yielding"),
]


def target_of(name, storage, **options):
    """Return the target of a scenario in this repository."""
    return scenario_target(find_scenario(name, folder=ROOT / "scenarios"), storage, **options)


@pytest.mark.parametrize(("name", "storage"), CASES)
def test_a_token_recorded_on_python_3_11_replays_here(name, storage):
    """The same violation, and the identical trace as far as Pythons can be compared."""
    if storage == "cosmos":
        pytest.importorskip("agent_framework_azure_cosmos")
    recorded = json.loads(FILE.read_text())[f"{name} {storage}"]
    schedule = parse_token(recorded)
    assert schedule.turns.startswith("3.11:")
    outcome = replay(target_of(name, storage, shapes=schedule.setup["shapes"] == "on"), schedule)
    assert outcome.same_trace is True
    assert [violation.oracle for violation in outcome.execution.violations] == ["completed_steps_restored"]


def test_a_replay_is_the_same_each_time():
    """Every turn of it."""
    schedule = parse_token(json.loads(FILE.read_text())["issue_9615 sqlite"])
    target = target_of("issue_9615", "sqlite", shapes=True)
    assert len({replay(target, schedule).execution.trace for _ in range(20)}) == 1


def record():
    """Write the tokens that this Python finds."""
    tokens = {}
    for name, storage in CASES:
        target = target_of(name, storage)
        found = search(target, phases=make_phases(rung=target.rung), budget=500).counterexample
        tokens[f"{name} {storage}"] = found.execution.schedule.token()
    FILE.write_text(json.dumps(tokens, indent=2) + "\n")


if __name__ == "__main__":
    record()
