"""The bugs of other frameworks are found within a budget, with an exact answer, where the framework is installed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.adapters.loading import load_scenarios, missing_requirement
from harness.adapters.portfolio import make_phases
from harness.adapters.pytest_scenarios import installed_version, is_affected
from harness.adapters.targets import scenario_target
from harness.commands.export import exported
from harness.commands.recorded import Given
from harness.report.export.source import ExportError
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


LOADS_A_COPY = """
    async def load_next(self):
        return copy.deepcopy(await super().load_next())
"""
# Scenario, storage, what the file may import, what its failure says, and what repairs it: a fix candidate, or an edit
# of the file that does what the framework does now.
EXPORTS = [
    ("langgraph_8039", "remote", {"copy", "typing", "langgraph"}, "executed again", "writes-first", ()),
    (
        "openai_agents_1658",
        "remote",
        {"collections", "typing", "agents", "openai"},
        "executed again",
        "",
        ('        await gate("save")\n', ""),
    ),
    (
        "pydantic_graph_1684",
        "full-state",
        {"__future__", "dataclasses", "typing", "pydantic_graph"},
        "a stored snapshot is not what was taken",
        "",
        ("    saved = []\n", f"    saved = []\n{LOADS_A_COPY}"),
    ),
]
RUNS = """
import contextlib, copy, runpy, sys
file, count, adapter, fix = sys.argv[1:]
bad = 0
with contextlib.ExitStack() as stack:
    if fix:
        from harness.adapters.targets import load_adapter
        stack.enter_context(load_adapter(adapter).fix(fix))
    for number in range(int(count)):
        namespace = runpy.run_path(file, {"copy": copy})
        try:
            next(value for name, value in namespace.items() if name.startswith("test_"))()
        except AssertionError:
            bad += 1
print(bad)
"""


def export_of(name, storage):
    """Search a neighbour's scenario and export what is found; return the scenario and the text."""
    (scenario,) = load_scenarios(str(SCENARIOS / f"{name}.py"))
    counterexample = look(name, storage).counterexample
    target = scenario_target(scenario, storage)
    given = Given(scenario, target, counterexample.execution.schedule, counterexample.text)
    text, tried = exported(given, script=False)
    assert tried.fails, tried.detail
    return scenario, text, tried.detail


def failures(file, count, *, adapter="", fix="", hash_seed="0"):
    """Return how many of ``count`` runs of the test in ``file`` fail their assertion on the stock loop."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNS, str(file), str(count), adapter, fix],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        timeout=120,
        check=True,
    )
    return int(done.stdout.split()[-1])


@pytest.mark.parametrize(("name", "storage", "modules", "said", "fix", "edit"), EXPORTS)
def test_a_finding_is_exported_and_fails_100_times_out_of_100(name, storage, modules, said, fix, edit, tmp_path):
    """It needs what the program imports; with the bug repaired it passes."""
    scenario, text, detail = export_of(name, storage)
    assert said in detail
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module).partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"asyncio", *modules}
    assert "harness" not in text
    file = tmp_path / "test_exported.py"
    file.write_text(text)
    assert [failures(file, 20, hash_seed=str(seed)) for seed in range(5)] == [20] * 5
    if edit:
        assert edit[0] in text
        file.write_text(text.replace(*edit))
    assert failures(file, 5, adapter=scenario.adapter, fix=fix) == 0


@pytest.mark.parametrize("name", ["langgraph_8039", "openai_agents_1658"])
def test_a_storage_on_a_thread_is_refused(name):
    """With the reason: no gate can hold its statements."""
    with pytest.raises(ExportError, match="'sqlite' works on a thread, which no gate can hold"):
        export_of(name, "sqlite")
