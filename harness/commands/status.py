"""How commands end: exit statuses, the one JSON object, and warnings.

Owns the numbers and where a warning goes; must not know which command ends with which.
"""

from typing import Any

import click

FOUND, USAGE, UNFINISHED, DIVERGED, INTERRUPTED = 1, 2, 3, 4, 130

_OF_VERDICT = {"violation": FOUND, "unfinished": UNFINISHED, "nondeterministic": DIVERGED}


def status_of(verdict: str, *, interrupted: bool) -> int:
    """Return the exit status that a verdict of a search or of a proof asks for; 0 when nothing is wrong."""
    return INTERRUPTED if interrupted else _OF_VERDICT.get(verdict, 0)


def one_object(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first violation, or the first result; all of them are under ``results`` when there are more."""
    first = next((item for item in objects if item["verdict"] == "violation"), objects[0])
    return first if len(objects) == 1 else {**first, "results": objects}


def warn(line: str) -> None:
    """Print one line on standard error."""
    click.echo(f"harness: {line}", err=True)
