"""``harness replay DIR``: everything that a failure store holds, executed here.

Owns the verdict per entry; must not change the store.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import click

from harness.commands.recorded import given_schedule
from harness.model.errors import DivergenceError, UsageError
from harness.model.scenario import Scenario
from harness.search.replay import replay
from harness.search.store import Entry, Store, Warn

# In the order of their weight for the exit status.
_STATUS = {"violation": 1, "diverged": 4, "error": 2, "fixed": 0}
_PYTEST_PASSED, _PYTEST_FAILED = 0, 1


def where_is(scenario: Scenario) -> str:
    """Return the file and the name of a scenario, or the name alone where its file lies outside this folder.

    No absolute path: a store goes to other machines.
    """
    file = Path(inspect.getsourcefile(scenario.program) or "").resolve()
    here = Path.cwd().resolve()
    return f"{file.relative_to(here).as_posix()}::{scenario.name}" if file.is_relative_to(here) else scenario.name


def replay_store(folder: Path, *, as_json: bool, warn: Warn) -> int:
    """Execute every schedule of ``folder`` and say what became of it; return the exit status."""
    rows = [(entry, *_outcome(entry)) for entry in Store(folder, warn=warn).entries()]
    if as_json:
        objects = [
            {"where": entry.where, "text": entry.text, "verdict": verdict, "message": said, "schedule": entry.token}
            for entry, verdict, said in rows
        ]
        click.echo(json.dumps({"store": str(folder), "results": objects}, indent=2))
    else:
        for entry, verdict, said in rows:
            mark = {"violation": "FAILS"}.get(verdict, verdict.upper())
            click.echo(f"{mark}: {entry.title}: {said}")
        if not rows:
            click.echo(f"{folder} holds no failing schedule")
    verdicts = {verdict for _, verdict, _ in rows}
    return next((status for verdict, status in _STATUS.items() if verdict in verdicts), 0)


def _outcome(entry: Entry) -> tuple[str, str]:
    """Return the verdict on one entry and one line."""
    try:
        if "scenario" not in entry.schedule.setup:
            return _test_outcome(entry)
        given = given_schedule(entry.where, entry.token)
        outcome = replay(given.target, entry.schedule)
    except DivergenceError as error:
        return "diverged", f"at choice {error.choice} recorded: {error.recorded}, now: {error.met}"
    except UsageError as error:
        return "error", f"it cannot be executed here: {error}"
    broken = outcome.execution.violations
    if broken:
        return "violation", f"{broken[0].oracle}: {broken[0].message.splitlines()[0]}"
    return "fixed", f"{entry.oracle} holds now"


def _test_outcome(entry: Entry) -> tuple[str, str]:
    """Let pytest replay the schedule of a test."""
    test = entry.schedule.setup.get("test", entry.where)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run([*command, "--interleave-replay", entry.token], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in done.stdout.splitlines()]
    if done.returncode == _PYTEST_PASSED:
        return "fixed", f"{entry.oracle} holds now"
    if done.returncode != _PYTEST_FAILED:
        said = next((line for line in (done.stderr + done.stdout).splitlines() if line.startswith("ERROR")), "")
        return "error", f"it cannot be executed here: {said or f'pytest ended with status {done.returncode}'}"
    for index, line in enumerate(lines):
        if line.startswith("replay met other operations"):
            return "diverged", "; ".join(lines[index : index + 3])
        if " is violated (rung " in line:
            return "violation", f"{entry.oracle}: {lines[index + 1]}"
    return "violation", f"{entry.oracle}: {entry.message}"
