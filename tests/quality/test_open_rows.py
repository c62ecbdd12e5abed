"""The open rows of the catalogue are found on the installed release, each within 50 executions.

A row of an older release is not looked at here: it needs that release.
"""

from pathlib import Path

import pytest

from harness.adapters.loading import find_scenario, scenario_files, scenarios_in
from harness.adapters.portfolio import make_phases
from harness.adapters.pytest_scenarios import installed_version, is_affected
from harness.adapters.targets import scenario_target
from harness.search.portfolio import search

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MOST = 50

# scenario, storage, oracle
ROWS = [
    ("straggler", "memory", "no_zombies"),
    ("straggler", "sqlite", "no_zombies"),
    ("straggler_next_run", "memory", "run_isolation"),
    ("straggler_next_run", "remote", "run_isolation"),
    ("straggler_resume", "memory", "restore_complete"),
    ("save_error", "memory", "completed_steps_restored"),
    ("save_error_retry", "memory", "decision_stable"),
    ("cancel_in_save", "remote", "completed_steps_restored"),
    ("cancel_in_save", "sqlite", "completed_steps_restored"),
    ("cancel_in_save_at_pause", "remote", "request_durable"),
    ("cancel_in_save_at_pause", "sqlite", "request_durable"),
    ("pause_hang", "memory", "progress"),
    ("dropped_stream", "memory", "run_isolation"),
    ("commit_no_ack", "file", "linear_lineage"),
    ("commit_no_ack", "sqlite", "linear_lineage"),
    ("write_order", "write-order", "completed_steps_restored"),
    ("write_order_latest", "write-order", "latest_is_maximal"),
    ("failed_half", "memory", "run_isolation"),
    ("issue_9615_task_group", "remote", "completed_steps_restored"),
    ("issue_9615_task_group", "sqlite", "completed_steps_restored"),
    ("issue_7647", "remote", "linear_lineage"),
    ("issue_7647", "file", "linear_lineage"),
    ("issue_8513", "memory", "latest_is_maximal"),
    ("closed_stream", "memory", "run_isolation"),
]


def found_in(name, storage, *, seed=0, budget=MOST, fix="", shapes=False):
    """Return the counterexample of a scenario on a storage, as it is unless shapes are on, or None."""
    scenario = find_scenario(name, folder=SCENARIOS)
    assert is_affected(scenario, installed_version(scenario.package))
    target = scenario_target(scenario, storage, shapes=shapes, fix=fix)
    return search(target, phases=make_phases(rung=target.rung, seed=seed), budget=budget).counterexample


@pytest.mark.slow
@pytest.mark.parametrize(("name", "storage", "oracle"), ROWS)
def test_an_open_row_is_found(name, storage, oracle):
    """With its own oracle, replaying, and with few deviations."""
    found = found_in(name, storage)
    assert found is not None
    assert found.replays, found.difference
    assert found.violation.oracle == oracle
    assert found.found_after <= MOST
    assert len(found.execution.schedule.decisions) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "storage"),
    [("cancel_in_save", "file"), ("cancel_in_save_at_pause", "memory"), ("commit_no_ack", "remote")],
)
def test_a_row_that_needs_an_await_shape_is_found(name, storage):
    """A shape and a cancellation that falls into a save so shaped are tried together."""
    found = found_in(name, storage, shapes=True, budget=2 * MOST)
    assert found is not None
    assert found.found_after <= MOST
    assert [decision.kind for decision in found.execution.schedule.decisions] == ["shape", "fault"]


@pytest.mark.slow
def test_a_graph_row_does_not_hang_on_the_seed():
    """The sweep finds what it finds before anything random begins."""
    for seed in range(3):
        assert found_in("commit_no_ack", "sqlite", seed=seed).found_by == "sweep"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "storage", "fix", "holds"),
    [
        ("write_order", "write-order", "save-on-failure", True),
        ("cancel_in_save", "remote", "shielded-save", True),
        ("cancel_in_save", "remote", "save-on-failure", False),
        ("issue_9615_task_group", "sqlite", "shielded-save", True),
        ("issue_9615_task_group", "remote", "save-on-failure", True),
        ("issue_7647", "remote", "shielded-save", False),
        ("straggler", "memory", "shielded-save", False),
        ("pause_hang", "memory", "save-on-failure", False),
        ("pause_hang", "memory", "shielded-save", False),
    ],
)
def test_the_fixes_of_9615_repair_what_is_known_of_them(name, storage, fix, holds):
    """And nothing more."""
    assert (found_in(name, storage, fix=fix) is None) == holds


def test_every_scenario_of_a_bug_says_where_it_breaks():
    """Its storages exist, and its first line is a sentence."""
    for file in scenario_files(SCENARIOS):
        for scenario in scenarios_in(file):
            if scenario.affected:
                assert set(scenario.breaks_on or ()) <= set(scenario.storages), scenario.name
                assert scenario.summary.endswith("."), scenario.name
