"""``harness export`` and the failure store on the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def harness(tmp_path):
    """Run the command line in a folder that has a copy of one scenario, in a process of its own."""
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    for name in ("issue_9615.py", "issue_9615_yield.py", "straggler.py"):
        (scenarios / name).write_text((ROOT / "scenarios" / name).read_text())

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )

    return run


def test_a_token_alone_becomes_a_test(harness, tmp_path):
    """It carries the scenario's name; the file fails where it says."""
    found = json.loads(harness("search", "issue_9615", "--storage", "remote", "--no-shapes", "--json").stdout)
    assert found["store"] == []
    result = harness("export", found["schedule"], "-o", "tests/test_9615.py")
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"tests/test_9615.py: 60 lines; it fails on the stock loop \(.+\)\n", result.stdout)
    printed = harness("export", "issue_9615", found["schedule"])
    assert printed.stdout == (tmp_path / "tests" / "test_9615.py").read_text()


def test_words_and_a_scenario_become_a_script(harness, tmp_path):
    """One that runs by itself."""
    result = harness(
        "export", "issue_9615", "hold done/job:write", "--storage", "sqlite", "--script", "-o", "reproduce.py"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "BUG: done had completed and was executed again" in result.stdout


def test_an_export_is_an_object_for_tools(harness, tmp_path):
    """With the source, whether it was written or not; what does not show is written only by force."""
    passes = ("export", "issue_9615", "hold nothing", "--storage", "remote", "--json")
    assert harness(*passes).returncode == 2
    shown = json.loads(harness("export", "issue_9615", "default order", "--storage", "remote", "--json").stdout)
    assert (shown["fails_on_stock_loop"], shown["lines"], shown["file"]) == (True, 60, None)
    assert shown["source"].startswith('"""microsoft/agent-framework #9615: ')


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["issue_9615_yield", "hold order_flow/done (2nd)"],
            2,
            "harness: issue_9615_yield on yielding (hold order_flow/done (2nd)) needs the rung relaxed: no run on the "
            "stock loop can show it\n",
        ),
        (["issue_9615", "default order", "--storage", "memory"], 1, "no promise is broken any more\n"),
        (["hold done/job:write"], 2, "name the scenario, too\n"),
        (["issue_9615", "default", "order"], 2, "put words into quotes\n"),
        (["h1.damaged"], 2, "copy the whole word again\n"),
        (["issue_9615", "hold nobody/call", "--storage", "remote"], 2, "nobody/call"),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_writes_nothing(harness, tmp_path, arguments, status, message):
    """On standard error, with the reason."""
    result = harness("export", *arguments, "-o", "test_it.py")
    assert (result.returncode, result.stdout) == (status, "")
    lines = [line for line in result.stderr.splitlines() if "RuntimeWarning" not in line]
    assert len(lines) == 1
    assert message.strip() in lines[0]
    assert not (tmp_path / "test_it.py").exists()


def test_failures_are_kept_and_replay_from_a_folder(harness, tmp_path):
    """One file each, of relative paths; nothing in the folder is changed by a replay."""
    first = harness("search", "scenarios/issue_9615.py", "--storage", "sqlite", "--no-shapes")
    assert first.returncode == 1
    (file,) = (tmp_path / ".harness").glob("*.json")
    assert json.loads(file.read_text())["where"] == "scenarios/issue_9615.py::issue_9615"
    assert str(tmp_path) not in file.read_text()
    again = harness("search", "issue_9615", "--storage", "sqlite", "--no-shapes")
    assert "found     after 1 execution by store" in again.stdout
    os.rename(tmp_path / ".harness", tmp_path / "artefact")
    before = file.name, (tmp_path / "artefact" / file.name).read_text()
    result = harness("replay", "artefact")
    assert result.returncode == 1
    assert result.stdout.startswith("FAILS: issue_9615 on sqlite (hold order_flow/done/job:write): completed_steps")
    (row,) = json.loads(harness("replay", "artefact", "--json").stdout)["results"]
    assert (row["verdict"], row["where"]) == ("violation", "scenarios/issue_9615.py::issue_9615")
    assert [(kept.name, kept.read_text()) for kept in (tmp_path / "artefact").iterdir()] == [before]


def test_what_is_fixed_leaves_and_what_diverges_stays(harness, tmp_path):
    """The program is edited between two searches."""
    scenario = tmp_path / "scenarios" / "issue_9615.py"
    original = scenario.read_text()
    arguments = ("search", "issue_9615", "--storage", "sqlite", "--no-shapes")
    harness(*arguments)
    scenario.write_text(
        original.replace("@step\nasync def done", "@step\nasync def charge").replace("done(", "charge(")
    )
    diverged = harness(*arguments, "--budget", "1")
    (line,) = [line for line in diverged.stdout.splitlines() if line.startswith("DIVERGED")]
    assert "hold order_flow/done/job:write" in line
    assert line.endswith(".json]")
    scenario.write_text(original.replace("harness.attempt() == 0", "order < 0"))
    fixed = harness(*arguments, "--budget", "30")
    assert "FIXED: issue_9615 on sqlite (hold order_flow/done/job:write): completed_steps_restored holds now" in (
        fixed.stdout
    )
    assert list((tmp_path / ".harness").iterdir()) == []


@pytest.mark.parametrize("option", ["--no-store", "--no-database"])
def test_the_store_can_be_switched_off(harness, tmp_path, option):
    """Nothing is written."""
    assert harness("search", "issue_9615", "--storage", "remote", "--no-shapes", option).returncode == 1
    assert not (tmp_path / ".harness").exists()


def test_damage_is_one_warning_line(harness, tmp_path):
    """The search goes on, and the file stays."""
    (tmp_path / ".harness").mkdir()
    (tmp_path / ".harness" / "damaged.json").write_text("{")
    result = harness("search", "issue_9615", "--storage", "remote", "--no-shapes")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("harness: .harness/damaged.json cannot be read and is left alone (JSONDecodeError")
    assert (tmp_path / ".harness" / "damaged.json").read_text() == "{"


def test_replaying_nothing_is_said(harness, tmp_path):
    """An empty folder, no folder, and no schedule."""
    (tmp_path / "empty").mkdir()
    assert harness("replay", "empty").stdout == "empty holds no failing schedule\n"
    result = harness("replay", "nowhere")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)


def test_an_interrupted_search_loses_nothing(harness, tmp_path):
    """What had failed before is still there, and is what fails first."""
    harness("search", "issue_9615", "--storage", "sqlite", "--no-shapes")
    kept = sorted((tmp_path / ".harness").iterdir())
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "harness",
            "search",
            "issue_9615",
            "--storage",
            "file",
            "--no-shapes",
            "--budget",
            "100000",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    left = sorted((tmp_path / ".harness").iterdir())
    assert set(kept) <= set(left)
    assert all(json.loads(file.read_text()) for file in left)
