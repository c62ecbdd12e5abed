"""``harness explain``: why one failing schedule fails.

Owns the options and the output; must not know how an explanation is found.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from harness.adapters.explaining import export_line, title_of
from harness.adapters.terminal import echo, program_name, width_of
from harness.commands.pages import html_option, write_page
from harness.commands.recorded import given_schedule, schedule_options, split
from harness.commands.status import FOUND
from harness.model.errors import NothingBrokenError
from harness.report.json import explanation_object
from harness.report.text import failure_report
from harness.search.explain import explain_schedule

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder


@click.command("explain")
@click.argument("scenario", metavar="[SCENARIO]")
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
    About a hundred executions are made. Exit status 1 when it fails, and 0 when there is nothing to explain any more.
    """
    scenario, schedule = ("", scenario) if schedule is None else (scenario, schedule)
    given = given_schedule(scenario, schedule, storage=storage, shapes=shapes, faults=split(faults), fix=fix)
    try:
        explanation = explain_schedule(given.target, given.schedule, title=title_of(given.target))
    except NothingBrokenError as error:
        click.echo(str(error) if not as_json else json.dumps({"explained": False, "message": str(error)}, indent=2))
        return 0
    token = explanation.schedule.token()
    reference = scenario or given.scenario.name
    line = f"{program_name()} replay {reference} {token}"
    export = export_line(program_name(), reference, given.scenario, token, rung=explanation.rung)
    page = "" if pages is None else write_page(pages, explanation, replay=line, export=export)
    if as_json:
        written = {} if pages is None else {"page": page or None}
        click.echo(json.dumps({**explanation_object(explanation), **written}, indent=2))
        return FOUND
    lines = failure_report(
        explanation,
        replay=line,
        export=export,
        width=width_of(),
    )
    echo(lines)
    if page:
        click.echo(f"page: {page}")
    return FOUND
