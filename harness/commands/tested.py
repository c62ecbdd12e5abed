"""Tests on a command line: their ids, and pytest in a process of its own.

Owns how pytest is called and where; must not know what a test does.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.model.errors import TokenError, UsageError
from harness.model.schedule import parse_token

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder
    from harness.model.explanation import Explanation

PASSED, FAILED = 0, 1
# Of a schedule that was executed again; in the order of their weight for the exit status.
STATUS = {"violation": 1, "diverged": 4, "error": 2, "fixed": 0}
_TEST = re.compile(r"(^|/)test_[^/]*\.py($|::)|_test\.py($|::)|::(.*::)?[Tt]est")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What pytest said. status: its own."""

    status: int
    output: str
    errors: str


def is_test(reference: str) -> bool:
    """Return whether ``reference`` is the id of a test rather than a scenario."""
    return bool(_TEST.search(reference))


def tested_id(reference: str, schedule: str) -> str:
    """Return the id of the test that a schedule is of, or "" when it is of a scenario.

    Raises UsageError for a token of another test than ``reference``.
    """
    recorded = ""
    if " " not in schedule:
        try:
            setup = parse_token(schedule).setup
        except TokenError:
            return ""  # said by who wants a scenario
        recorded = "" if "scenario" in setup else setup.get("test", "")
    if not is_test(reference):
        return recorded
    if recorded and not (recorded == reference or recorded.endswith("/" + reference)):
        raise UsageError(f"the token is of {recorded}, not of {reference}")
    return recorded or reference


def folder_of(test: str) -> Path:
    """Return the folder that a test's id is relative to: this one, or the nearest above that has its file."""
    file = Path(test.partition("::")[0])
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / file).is_file():
            return folder
    raise UsageError(f"no such test file: {file}")


def run_pytest(test: str, options: Sequence[str]) -> Outcome:
    """Run one test; raises UsageError when its file is not here."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test, *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder_of(test), check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def replaying(schedule: str, *, pages: PageFolder | None = None) -> list[str]:
    """Return the options that replay a schedule, a token or words, and that write its page."""
    written = [] if pages is None else ["--interleave-html", str(pages.folder.resolve())]
    return ["--interleave-replay", schedule, *written]


def verdict_of(outcome: Outcome) -> tuple[str, str]:
    """Return what became of a schedule that pytest was to replay, and one line, "" where there is none."""
    if outcome.status == PASSED:
        return ("error", "it was skipped") if " skipped" in outcome.output else ("fixed", "")
    if outcome.status != FAILED:
        return "error", f"it cannot be executed here: {error_line(outcome)}"
    lines = [line.strip() for line in outcome.output.splitlines()]
    for index, line in enumerate(lines):
        if line.startswith("replay met other operations"):
            choice = line.partition(" at ")[2].partition(" (")[0]
            return "diverged", f"at {choice} {lines[index + 1]}, {' '.join(lines[index + 2].split())}"
        if ": nothing is called " in line or line.startswith("no clause of a schedule"):
            return "error", line
        if " is violated (rung " in line:
            got = next((found for found in lines[index:] if found.startswith("got ")), lines[index + 1])
            return "violation", f"{line.partition(': ')[2].partition(' is ')[0]}: {got.removeprefix('got').strip()}"
    return "violation", ""


def replay_test(test: str, schedule: str, *, pages: PageFolder | None, as_json: bool) -> int:
    """Replay a schedule of a test and show what pytest says of it; return the exit status."""
    outcome = run_pytest(test, replaying(schedule, pages=pages))
    verdict, said = verdict_of(outcome)
    if as_json:
        click.echo(json.dumps({"test": test, "verdict": verdict, "message": said or None}, indent=2))
    elif verdict == "error":
        raise UsageError(f"{test}: {said}")
    elif verdict == "fixed":
        click.echo(f"{test}: no promise is broken any more")
    else:
        lines = outcome.output.splitlines()
        first = next((index for index, line in enumerate(lines) if re.match(r"=+ FAILURES =+$", line)), 0)
        last = next((index for index, line in enumerate(lines) if "short test summary info" in line), len(lines))
        click.echo("\n".join(lines[first + 2 : last]))
    return STATUS[verdict]


def explained_test(test: str, schedule: str) -> Explanation:
    """Return why a schedule of a test, a token or words, fails; pytest sets the test up.

    Raises UsageError for what cannot be run (NothingBrokenError for a schedule that passes), and DivergenceError.
    """
    from harness.adapters.pytest_explain import read_explanation  # only an explanation needs it

    with tempfile.TemporaryDirectory(prefix="explain-") as folder:
        file = Path(folder) / "explanation"
        options = ["--interleave-replay", schedule, "--interleave-explain", str(file), "--interleave-no-store"]
        outcome = run_pytest(test, options)
        if not file.exists():
            raise UsageError(f"{test} cannot be executed here: {error_line(outcome)}")
        return read_explanation(file)


def refuse_options(test: str, **given: object) -> None:
    """Raise UsageError for an option of scenarios, whose value is not None, with a test."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name} is for a scenario: the marker of {test} says it")


def error_line(outcome: Outcome) -> str:
    """Return the line that says why a test did not run."""
    lines = (outcome.errors + outcome.output).splitlines()
    found = next((line for line in lines if line.startswith("ERROR")), "")
    return found or f"pytest ended with status {outcome.status}"
