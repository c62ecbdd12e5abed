"""``--html DIR``: the option that writes one page per counterexample.

Owns the check of the folder before anything runs, and the line that names a page; must not know what a page says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.adapters.explaining import title_of
from harness.model.errors import UsageError
from harness.model.explanation import Explanation
from harness.model.schedule import Schedule
from harness.search.replayed import replayed
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


def write_page(pages: PageFolder, explanation: Explanation, *, replay: str, export: str = "") -> str:
    """Write the page of ``explanation`` and return its path, or "" when it could not be written.

    That is a line on standard error: the finding itself is worth more.
    """
    try:
        return str(pages.write(explanation, replay=replay, export=export))
    except UsageError as error:
        click.echo(f"harness: {error}", err=True)
        return ""


def write_replayed(pages: PageFolder, target: Target, schedule: Schedule | str, *, replay: str) -> str:
    """Write the page of a schedule that was replayed, whether it fails or not; return its path, or ""."""
    return write_page(pages, replayed(target, schedule, title=title_of(target)), replay=replay)
