"""``harness explain``: why one failing schedule fails, or each that a failure store holds.

Owns the options, the output and the exit status; must not know how an explanation is found.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.adapters.terminal import echo, width_of
from harness.commands.explained import Explained, explained
from harness.commands.pages import html_option, write_page
from harness.commands.recorded import schedule_options, split
from harness.commands.status import FOUND, warn
from harness.commands.stored import MARKS, diverged_at, is_store, named_by, recorded_options, status_of
from harness.model.errors import DivergenceError, NothingBrokenError, UsageError
from harness.report.json import explanation_object
from harness.report.text import failure_report
from harness.search.store import Entry, Store

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder


@click.command("explain")
@click.argument("scenario", metavar="[SCENARIO|TEST|DIR]")
@click.argument("schedule", metavar="SCHEDULE", required=False)
@schedule_options
@html_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain_command(
    scenario: str,
    schedule: str | None,
    storage: str | None,
    shapes: bool | None,
    faults: str | None,
    fix: str | None,
    pages: PageFolder | None,
    as_json: bool,
) -> int:
    """Say which ordering decides that SCHEDULE of SCENARIO fails, and which change makes it pass.

    SCHEDULE is the token that a search printed, which is enough alone, or words such as "hold done/save#1.commit".
    TEST is the id of a test, such as tests/test_bank.py::test_transfer. DIR is a failure store, or one file of it:
    each schedule in it that still fails is explained, and nothing in it is changed.
    About a hundred executions are made. Exit status 1 when it fails, and 0 when there is nothing to explain any more.
    """
    if schedule is None and is_store(Path(scenario)):
        return _explain_store(Path(scenario), pages=pages, as_json=as_json)
    scenario, schedule = ("", scenario) if schedule is None else (scenario, schedule)
    try:
        found = explained(scenario, schedule, storage=storage, shapes=shapes, faults=split(faults), fix=fix)
    except NothingBrokenError as error:
        click.echo(str(error) if not as_json else json.dumps({"explained": False, "message": str(error)}, indent=2))
        return 0
    page = _page(found, pages)
    if as_json:
        click.echo(json.dumps(_object(found, page), indent=2))
    else:
        _print(found, page)
    return FOUND


def _page(found: Explained, pages: PageFolder | None) -> str | None:
    """Write the page and return its path, "" when that failed, or None when nobody asked for it."""
    if pages is None:
        return None
    return write_page(pages, found.explanation, replay=found.replay, export=found.export)


def _object(found: Explained, page: str | None) -> dict[str, Any]:
    return {**explanation_object(found.explanation), **({} if page is None else {"page": page or None})}


def _print(found: Explained, page: str | None) -> None:
    echo(failure_report(found.explanation, replay=found.replay, export=found.export, width=width_of()))
    if page:
        click.echo(f"page: {page}")


# -- a failure store -----------------------------------------------------------------------------------


def _explain_store(folder: Path, *, pages: PageFolder | None, as_json: bool) -> int:
    """Explain every schedule of ``folder`` that still fails, and say what became of the others."""
    results: list[dict[str, Any]] = []
    for entry in Store(folder, warn=warn).entries():
        found, verdict, said = _entry(entry)
        page = None if found is None else _page(found, pages)
        shown = None if found is None else _object(found, page)
        results.append(
            {
                "where": entry.where,
                "text": entry.text,
                "verdict": verdict,
                "message": said,
                "schedule": entry.token,
                "explanation": shown,
            }
        )
        if as_json:
            continue
        if len(results) > 1:
            click.echo()
        if found is None:
            click.echo(f"{MARKS[verdict]}: {entry.title}: {said}")
        else:
            _print(found, page)
    if as_json:
        click.echo(json.dumps({"store": str(folder), "results": results}, indent=2))
    elif not results:
        click.echo(f"{folder} holds no failing schedule")
    return status_of(str(row["verdict"]) for row in results)


def _entry(entry: Entry) -> tuple[Explained | None, str, str]:
    """Return the explanation of one entry, if it fails, its verdict, and one line."""
    try:
        found = _followed(entry)
    except NothingBrokenError:
        return None, "fixed", f"{entry.oracle} holds now"
    except DivergenceError as error:
        return None, "diverged", diverged_at(error)
    except UsageError as error:
        return None, "error", f"it cannot be executed here: {error}"
    violation = found.explanation.violation
    return found, "violation", f"{violation.oracle}: {violation.message.splitlines()[0]}"


def _followed(entry: Entry) -> Explained:
    """Return the explanation of one entry: of its token, or of its words where the token does not fit."""
    reference, options = named_by(entry), recorded_options(entry)
    try:
        return explained(reference, entry.token, **options)
    except DivergenceError as error:
        if not entry.text:
            raise
        try:
            return explained(reference, entry.text, **options)
        except NothingBrokenError:
            raise
        except (DivergenceError, UsageError):
            raise error from None  # the words may name what the program has no longer
