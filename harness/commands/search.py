"""``harness search``: search the schedules of a scenario for a broken promise.

Owns the options, the output and the exit status; must not decide what a search does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.adapters.explaining import export_line, title_of
from harness.adapters.loading import load_scenarios
from harness.adapters.portfolio import DEFAULT
from harness.adapters.recipes import ScenarioRecipe
from harness.adapters.terminal import echo, program_name, width_of
from harness.commands.pages import html_option, write_page
from harness.commands.pools import open_pool
from harness.commands.progress import moving_line
from harness.commands.recorded import split
from harness.commands.searching import Searching
from harness.commands.status import INTERRUPTED, one_object, status_of, warn
from harness.commands.storages import usable_here
from harness.model.scenario import Scenario
from harness.report.annotations import PREFIX, github_annotation, properties
from harness.report.json import result_object
from harness.report.text import failure_report, summary_table
from harness.search.result import Counterexample, SearchResult
from harness.search.store import FOLDER as FAILURES
from harness.search.store import Store
from harness.search.target import Target

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder

DATABASE = Path(".hypothesis") / "harness"


@click.command("search")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--storage", multiple=True, help="Storage to run on; repeatable. Default: all of the scenario.")
@click.option("--budget", type=click.IntRange(min=1), help="Executions per storage.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random phases.")
@click.option("--rung", help="Highest assumption: exact, latency or relaxed.")
@click.option(
    "--scheduler",
    default=DEFAULT,
    show_default=True,
    help="portfolio, sweep, greybox, hypothesis, or a scheduler's name.",
)
@click.option("--fix", default="", help="Fix candidate to apply to the framework.")
@click.option("--clock", help="increasing, coarse:SECONDS, frozen, stepback. Default: as the scenario says.")
@click.option("--shapes/--no-shapes", default=None, help="Also choose how saves wait. Default: as the scenario says.")
@click.option(
    "--faults",
    help="What may happen: cancel,timeout,crash,storage,stream,close,drop,resume,hang. Default: the scenario's.",
)
@click.option("--database/--no-database", default=True, help="Start from what failed before, and remember failures.")
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), default=FAILURES, show_default=True)
@click.option("--no-store", is_flag=True, help="Do not run what failed before first, and do not keep failures.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that share the search. Default: 1.")
@click.option("--cluster", metavar="ADDRESS", help="Share it on this Dask cluster instead.")
@html_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def search_command(
    scenario: str,
    storage: tuple[str, ...],
    budget: int | None,
    seed: int,
    rung: str | None,
    scheduler: str,
    fix: str,
    clock: str | None,
    shapes: bool | None,
    faults: str | None,
    database: bool,
    store: Path,
    no_store: bool,
    jobs: int | None,
    cluster: str | None,
    pages: PageFolder | None,
    as_json: bool,
) -> int:
    """Search schedules of SCENARIO for a broken promise."""
    chosen = load_scenarios(scenario)
    failures = Store(store, warn=warn) if database and not no_store else None
    status = 0
    objects: list[dict[str, Any]] = []
    said: list[str] = []
    with open_pool(jobs, default=1, cluster=cluster) as pool:
        for item in chosen:
            recipes = [
                ScenarioRecipe(scenario, item.name, name, fix, rung, clock, shapes, split(faults))
                for name in storage or usable_here(item)
            ]
            searching = Searching(
                scheduler, budget or item.budget, seed, DATABASE if database else None, failures, moving_line, warn
            )
            rows = list(searching.search(recipes, pool=pool, said=said))
            found = [
                result_object(result, setup=target.setup, rung=target.rung, without=target.without)
                for target, result in rows
            ]
            reference = _reference(scenario, item, alone=len(chosen) == 1)
            _annotate(item, rows)
            if not as_json:
                _print_results(item, rows, reference=reference)
                for line in said:
                    click.echo(line)
                said.clear()
            if pages is not None:
                for described, page in zip(found, _write_pages(pages, item, rows, reference=reference), strict=True):
                    described["page"] = page or None
                    if page and not as_json:
                        click.echo(f"page: {page}")
            objects += found
            status = max(status, *(status_of(result.verdict, interrupted=result.interrupted) for _, result in rows))
            if status == INTERRUPTED:
                break
    if as_json:
        click.echo(json.dumps({**one_object(objects), "store": said}, indent=2))
    return status


def _reference(given: str, scenario: Scenario, *, alone: bool) -> str:
    """Return what to write on a command line for one scenario of what the user named."""
    return given if alone or not given.endswith(".py") else f"{given}::{scenario.name}"


def _print_results(scenario: Scenario, rows: list[tuple[Target, SearchResult]], *, reference: str) -> None:
    rung = max((target.rung for target, _ in rows), default=scenario.rung).label
    click.echo(f"{scenario.name}: {scenario.summary}")
    click.echo(summary_table([(target.setup, result) for target, result in rows], rung=rung))
    reported = False
    for target, result in rows:
        found = result.counterexample
        if found is None:
            continue
        line = _replay_line(found, reference=reference)
        storage = target.setup.get("storage", "")
        if reported or found.explanation is None:
            click.echo(f"\n{storage}: {line}")
            continue
        export = _export_line(found, scenario, reference=reference)
        echo([(), *failure_report(found.explanation, replay=line, export=export, width=width_of())])
        reported = True
    if not reported:
        for oracle, reason in {key: text for target, _ in rows for key, text in target.without.items()}.items():
            click.echo(f"not judged: {oracle} ({reason})")
    if any(result.interrupted for _, result in rows):
        total = sum(result.executions for _, result in rows)
        click.echo(f"\ninterrupted after {total} execution(s)")


def _replay_line(found: Counterexample, *, reference: str) -> str:
    return f"{program_name()} replay {reference} {found.execution.schedule.token()}"


def _export_line(found: Counterexample, scenario: Scenario, *, reference: str) -> str:
    return export_line(program_name(), reference, scenario, found.execution.schedule.token(), rung=found.rung)


def _write_pages(
    pages: PageFolder, scenario: Scenario, rows: list[tuple[Target, SearchResult]], *, reference: str
) -> Iterator[str]:
    """Write the page of each search that found something; yield its path, or "" for the others."""
    for _, result in rows:
        found = result.counterexample
        if found is None or found.explanation is None:
            yield ""
            continue
        line, export = _replay_line(found, reference=reference), _export_line(found, scenario, reference=reference)
        yield write_page(pages, found.explanation, replay=line, export=export)


def _annotate(scenario: Scenario, rows: list[tuple[Target, SearchResult]]) -> None:
    """Let GitHub mark the line that decides, where it asks; on standard error, which it reads as well."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    code = scenario.program.__code__
    for target, result in rows:
        found = result.counterexample
        if found is not None and found.explanation is not None:
            named = properties(found.explanation, fallback=f"{code.co_filename}:{code.co_firstlineno}")
            what = f"{title_of(target)}: {found.violation.oracle}"
            click.echo(github_annotation(what, {name.removeprefix(PREFIX): text for name, text in named}), err=True)
