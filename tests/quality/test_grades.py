"""The grade table finds by itself what is known by hand of the fix candidates."""

from pathlib import Path

import pytest

from harness.adapters.loading import find_scenario
from harness.adapters.targets import scenario_target
from harness.commands.grade import grade, hangs
from harness.search.survey import survey
from harness.search.target import Runner

SCENARIOS = Path(__file__).parents[2] / "scenarios"
BUDGET = 30


def grades(name, storage):
    """Return verdict and whether it can hang, by fix."""
    scenario = find_scenario(name, folder=SCENARIOS)
    base = survey(scenario_target(scenario, storage), budget=BUDGET)
    base_hangs = hangs(scenario, storage, "", budget=BUDGET)
    found = {}
    for fix in ("save-on-failure", "shielded-save"):
        item = grade(scenario, storage, fix, budget=BUDGET, base=base, base_hangs=base_hangs)
        found[fix] = item.verdict, item.hangs
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "storage", "on_failure", "shielded"),
    [
        ("issue_9615", "remote", "repairs", "repairs"),
        ("issue_9615_task_group", "remote", "repairs", "repairs"),
        ("issue_7647", "remote", "repairs nothing", "repairs nothing"),
        ("pause_hang", "remote", "repairs nothing", "repairs nothing"),
        ("cancel_in_save", "remote", "repairs nothing", "repairs"),
        ("write_order", "write-order", "repairs", "repairs"),
    ],
)
def test_each_fix_repairs_what_it_is_known_to_repair(name, storage, on_failure, shielded):
    """And nothing more."""
    found = grades(name, storage)
    assert {fix: verdict for fix, (verdict, _) in found.items()} == {
        "save-on-failure": on_failure,
        "shielded-save": shielded,
    }


@pytest.mark.parametrize("budget", [1, 10, 45])
def test_a_survey_executes_its_budget(budget, monkeypatch):
    """However many shapes there are; the schedules that it is given come on top."""
    target = scenario_target(find_scenario("issue_7647", folder=SCENARIOS), "remote", shapes=True)
    executions = []
    run = Runner.run

    def counted(runner, *args, **more):
        executions.append(1)
        return run(runner, *args, **more)

    monkeypatch.setattr(Runner, "run", counted)
    survey(target, budget=budget, plans=[((1, 1),), ((2, 1),)])
    assert len(executions) == budget + 2


@pytest.mark.slow
def test_neither_fix_repairs_the_straggler():
    """Some of its schedules pass, others fail as before."""
    assert all(verdict in ("repairs nothing", "repairs part") for verdict, _ in grades("straggler", "remote").values())


@pytest.mark.slow
def test_the_shielded_save_lets_a_storage_that_never_finishes_delay_the_end():
    """The other candidate does not."""
    found = grades("issue_9615", "remote")
    assert {fix: can_hang for fix, (_, can_hang) in found.items()} == {"save-on-failure": False, "shielded-save": True}
