"""Tests on a command line: their ids, and pytest in a process of its own.

Owns how pytest is called and where; must not know what a test does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import TokenError, UsageError
from harness.model.schedule import parse_token

PASSED, FAILED = 0, 1
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


def error_line(outcome: Outcome) -> str:
    """Return the line that says why a test did not run."""
    lines = (outcome.errors + outcome.output).splitlines()
    found = next((line for line in lines if line.startswith("ERROR")), "")
    return found or f"pytest ended with status {outcome.status}"
