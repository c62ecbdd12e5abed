"""``harness replay``: execute one schedule again, or all that a failure store holds.

Owns the options, the output and the exit status; must not decide whether a replay diverged.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.adapters.terminal import echo, program_name, width_of
from harness.commands.pages import html_option, write_replayed
from harness.commands.recorded import Given, given_schedule, schedule_options, split
from harness.commands.status import DIVERGED, FOUND, warn
from harness.commands.stored import is_store, replay_store
from harness.commands.tested import refuse_options, replay_test, tested_id
from harness.model.errors import UsageError
from harness.report.table import table
from harness.search.explain import plain_timeline
from harness.search.replay import ReplayResult, replay, replay_text

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder


@click.command("replay")
@click.argument("scenario", metavar="SCENARIO|TEST|DIR")
@click.argument("schedule", metavar="[SCHEDULE]", required=False)
@schedule_options
@click.option("--full", is_flag=True, help="Print every turn.")
@html_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay_command(
    scenario: str,
    schedule: str | None,
    storage: str | None,
    shapes: bool | None,
    faults: str | None,
    fix: str | None,
    full: bool,
    pages: PageFolder | None,
    as_json: bool,
) -> int:
    """Execute one schedule of SCENARIO again and show what happens.

    SCHEDULE is the token that a search printed, or words such as "hold done/save#1.commit until flaky raises".
    A token alone is enough: it carries the scenario's name. TEST is the id of a test, such as
    tests/test_bank.py::test_transfer. DIR is a failure store, such as an artefact of a CI run, or one file of it: all
    of it is executed, and nothing in it is changed.
    """
    if schedule is None and is_store(Path(scenario)):
        return replay_store(Path(scenario), pages=pages, as_json=as_json, warn=warn)
    if test := tested_id("" if schedule is None else scenario, schedule or scenario):
        refuse_options(test, storage=storage, shapes=shapes, faults=faults, fix=fix)
        return replay_test(test, schedule or scenario, pages=pages, as_json=as_json)
    if schedule is None and not scenario.startswith("h1."):
        raise UsageError(f"{scenario!r} is no folder and no token: name a schedule, too")
    scenario, schedule = ("", scenario) if schedule is None else (scenario, schedule)
    given = given_schedule(scenario, schedule, storage=storage, shapes=shapes, faults=split(faults), fix=fix)
    target, wanted = given.target, given.schedule
    outcome = replay_text(target, wanted) if isinstance(wanted, str) else replay(target, wanted)
    page = ""
    if pages is not None:
        line = shlex.join([program_name(), "replay", *filter(None, (scenario, schedule))])
        page = write_replayed(pages, target, wanted, replay=line)
    if as_json:
        described = _described(given, outcome)
        if pages is not None:
            described["page"] = page or None
        click.echo(json.dumps(described, indent=2))
    else:
        _print(given, outcome, full=full)
        if page:
            click.echo(f"page: {page}")
    if outcome.same_trace is False and fix is None:
        return DIVERGED
    return FOUND if outcome.execution.violations else 0


def _described(given: Given, outcome: ReplayResult) -> dict[str, Any]:
    """Return the replay as one JSON object."""
    target, execution = given.target, outcome.execution
    broken = execution.violations
    return {
        "scenario": target.name,
        "storage": target.setup["storage"],
        "verdict": "violation" if broken else "none-found",
        "rung": execution.rung.label,
        "oracle": broken[0].oracle if broken else None,
        "message": broken[0].message if broken else None,
        "text": given.text,
        "same_trace": outcome.same_trace,
        "facts": execution.schedule.facts,
        "turns": execution.schedule.turns,
        "trace": [turn._asdict() for turn in execution.trace],
    }


def _print(given: Given, outcome: ReplayResult, *, full: bool) -> None:
    target, text, execution = given.target, given.text, outcome.execution
    broken = execution.violations
    click.echo(f"{target.name} on {target.setup['storage']}: {text}")
    if broken:
        click.echo(f"  {broken[0].oracle} is violated (rung {execution.rung.label}): {broken[0].message}")
    else:
        click.echo("  no promise is broken any more")
    if outcome.same_trace is not None:
        same = "the recorded trace" if outcome.same_trace else "NOT the recorded trace"
        click.echo(f"  {same} (facts {execution.schedule.facts}, turns {execution.schedule.turns})")
    if full:
        click.echo("\n".join(_full_trace(execution.trace)))
    else:
        echo(table(plain_timeline(execution, text=text), width=width_of(), limit=30))


def _full_trace(trace: Any) -> list[str]:
    return [f"  {turn.number:5d} {turn.now_s:9.6f}  {turn.lane}  {turn.what}  {turn.where}".rstrip() for turn in trace]
