"""``--html DIR``: the option that writes one page per counterexample.

Owns the check of the folder before anything runs, and the line that names a page; must not know what a page says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.model.errors import UsageError
from harness.model.explanation import Explanation
from harness.model.schedule import Schedule
from harness.search.explain import explanation_of
from harness.search.replayed import replayed
from harness.search.result import Counterexample
from harness.search.target import Target

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder


def _folder(_context: click.Context, _option: click.Parameter, value: Path | None) -> PageFolder | None:
    """Return the folder, or raise UsageError before anything is searched; Jinja2 is loaded only when it is needed."""
    if value is None:
        return None
    from harness.adapters.jinja2.folder import PageFolder

    return PageFolder(value)


html_option = click.option(
    "--html",
    "pages",
    metavar="DIR",
    type=click.Path(path_type=Path),
    callback=_folder,
    help="Write one HTML page per counterexample to this folder: its timeline, and the nearest passing one.",
)


def write_page(pages: PageFolder, target: Target, found: Counterexample, *, replay: str) -> str:
    """Write the page of ``found`` and return its path, or "" where there is none.

    One that cannot be written is a line on standard error: the finding itself is worth more.
    """
    explanation = found.explanation
    if explanation is None and found.replays:
        return ""  # its explanation was interrupted
    return _written(pages, explanation or explanation_of(target, found, title=_title(target)), replay=replay)


def write_replayed(pages: PageFolder, target: Target, schedule: Schedule | str, *, replay: str) -> str:
    """Write the page of a schedule that was replayed, whether it fails or not; return its path, or ""."""
    return _written(pages, replayed(target, schedule, title=_title(target)), replay=replay)


def _written(pages: PageFolder, explanation: Explanation, *, replay: str) -> str:
    try:
        return str(pages.write(explanation, replay=replay))
    except UsageError as error:
        click.echo(f"harness: {error}", err=True)
        return ""


def _title(target: Target) -> str:
    return f"{target.name} on {target.setup['storage']}" if "storage" in target.setup else target.name
