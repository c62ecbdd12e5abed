"""A storage whose package is not installed: listed, left out of what was not chosen, one line when it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULE = "agent_framework_azure_cosmos"
LINE = "the storage 'cosmos' needs 'agent-framework-azure-cosmos', which is not installed"


@pytest.fixture
def run(tmp_path):
    """Run a command in an environment without the package."""
    (tmp_path / f"{MODULE}.py").write_text(f"raise ModuleNotFoundError('none', name={MODULE!r})\n")

    def command(*arguments):
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
            env={**os.environ, "PYTHONPATH": path},
        )

    return command


@pytest.mark.slow
def test_a_storage_that_is_chosen_is_one_line(run):
    """Status 2, and the name of the package."""
    result = run("harness", "search", "issue_9615", "--storage", "cosmos")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"harness: {LINE}\n")


@pytest.mark.slow
def test_a_search_of_all_storages_leaves_it_out(run):
    """And says so; the others are searched."""
    result = run("harness", "search", "issue_9615", "--no-shapes", "--budget", "3", "--no-database", "--json")
    assert (result.returncode, result.stderr) == (1, f"harness: issue_9615: left out: {LINE}\n")
    rows = json.loads(result.stdout)["results"]
    assert [row["storage"] for row in rows] == ["memory", "file", "remote", "sqlite"]


@pytest.mark.slow
def test_grades_leave_it_out(run):
    """As a search does."""
    result = run("harness", "grade", "issue_9615", "--fix", "shielded-save", "--budget", "2", "--json")
    assert result.stderr == f"harness: issue_9615: left out: {LINE}\n"
    assert {row["storage"] for row in json.loads(result.stdout)["grades"]} == {"memory", "file", "remote", "sqlite"}


@pytest.mark.slow
def test_the_list_names_it_all_the_same(run):
    """A scenario says on which storages it runs, not what is installed."""
    result = run("harness", "list")
    assert (result.returncode, result.stderr) == (0, "")
    assert "issue_9615  " in result.stdout
    assert "sqlite, cosmos;" in result.stdout


@pytest.mark.slow
def test_pytest_skips_its_scenarios_with_the_reason(run):
    """The others run as before."""
    result = run("pytest", "scenarios/issue_9615.py", "-rs", "-p", "no:cacheprovider", "--interleave-budget", "3")
    assert result.returncode == 0, result.stdout
    assert LINE in result.stdout
    assert "1 skipped" in result.stdout
