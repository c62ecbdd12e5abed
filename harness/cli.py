"""The command line: ``harness list | search | replay``.

Owns options, exit statuses and what goes to which stream; must not decide what a search does.

Exit status: 0 nothing found, 1 a violation, 2 wrong usage, 3 the budget ended before the answer, 4 a
replay diverged or went another way; 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import __version__
from harness.adapters.explaining import export_line, title_of
from harness.adapters.loading import FOLDER, load_scenarios, missing_requirement, scenario_files, scenarios_in
from harness.adapters.portfolio import DEFAULT
from harness.adapters.recipes import ScenarioRecipe
from harness.adapters.terminal import echo, program_name, width_of
from harness.commands.catalogue import catalogue
from harness.commands.explain import explain_command
from harness.commands.export import export_command
from harness.commands.grade import grade_command
from harness.commands.pages import html_option, write_page, write_replayed
from harness.commands.pools import open_pool
from harness.commands.prove import prove
from harness.commands.recorded import given_schedule, split
from harness.commands.searching import Searching
from harness.commands.storages import usable_here
from harness.commands.stored import replay_store
from harness.commands.tested import replay_test, tested_id
from harness.commands.versions import versions
from harness.model.errors import DivergenceError, HarnessError, UsageError
from harness.model.registry import unknown
from harness.model.rung import Rung
from harness.model.scenario import Scenario
from harness.report.annotations import PREFIX, github_annotation, properties
from harness.report.json import result_object
from harness.report.table import table
from harness.report.text import failure_report, summary_table
from harness.search.explain import plain_timeline
from harness.search.replay import replay as run_replay
from harness.search.replay import replay_text as run_replay_text
from harness.search.result import Counterexample, SearchResult
from harness.search.store import FOLDER as FAILURES
from harness.search.store import Store
from harness.search.target import Target

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder

FOUND, USAGE, UNFINISHED, DIVERGED, INTERRUPTED = 1, 2, 3, 4, 130
DATABASE = Path(".hypothesis") / "harness"

scenario_argument = click.argument("scenario", metavar="SCENARIO")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="harness")
def app() -> None:
    """Find the orders in which an asyncio program breaks its promises.

    SCENARIO is a file, file.py::name, the name of a scenario in ./scenarios, or module:attribute.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # programs under test log their failures


@app.command("list")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Where scenarios are.")
@click.option("--catalogue", "known_bugs", is_flag=True, help="The table of known bugs: as `harness catalogue`.")
@json_option
@click.pass_context
def list_command(context: click.Context, folder: Path, known_bugs: bool, as_json: bool) -> None:
    """List the scenarios of a folder: name, storages, affected range, promise."""
    if known_bugs:
        context.invoke(catalogue, folder=folder, as_json=as_json)
        return
    if not folder.is_dir():
        raise UsageError(f"no such folder: {folder}")
    rows: list[tuple[Scenario, Path]] = []
    for file in scenario_files(folder):
        rows += [(scenario, file) for scenario in scenarios_in(file)]
    if as_json:
        click.echo(json.dumps({"scenarios": [_scenario_object(scenario, file) for scenario, file in rows]}, indent=2))
        return
    width = max((len(scenario.name) for scenario, _ in rows), default=0)
    for scenario, _ in rows:
        affected = f"{scenario.package} {scenario.affected}" if scenario.affected else "no known bug"
        missing = missing_requirement(scenario)
        line = f"{scenario.name.ljust(width)}  {', '.join(scenario.storages)}; {affected}"
        click.echo(f"{line} ({missing})" if missing else line)
        click.echo(f"{' ' * width}  {scenario.summary}")


@app.command()
@scenario_argument
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
@json_option
def search(
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
    failures = Store(store, warn=_warn) if database and not no_store else None
    status = 0
    objects: list[dict[str, Any]] = []
    said: list[str] = []
    if rung is not None:
        _parse_rung(rung)
    with open_pool(jobs, default=1, cluster=cluster) as pool:
        for item in chosen:
            recipes = [
                ScenarioRecipe(scenario, item.name, name, fix, rung, clock, shapes, split(faults))
                for name in storage or usable_here(item)
            ]
            searching = Searching(
                scheduler, budget or item.budget, seed, DATABASE if database else None, failures, _progress, _warn
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
            status = max(status, *(_status(result) for _, result in rows))
            if status == INTERRUPTED:
                break
    if as_json:
        click.echo(json.dumps({**_one_object(objects), "store": said}, indent=2))
    return status


@app.command()
@click.argument("scenario", metavar="SCENARIO|DIR")
@click.argument("schedule", metavar="[SCHEDULE]", required=False)
@click.option("--storage", help="Storage to run on, for a schedule in words. Default: the first of the scenario.")
@click.option("--shapes/--no-shapes", default=None, help="For a schedule in words: whether it names an await shape.")
@click.option("--faults", help="For a schedule in words: what may happen to a run.")
@click.option("--fix", default=None, help="Fix candidate to apply; default: as recorded.")
@click.option("--full", is_flag=True, help="Print every turn.")
@html_option
@json_option
def replay(
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
    A token alone is enough: it carries the scenario's name. DIR is a failure store, such as an artefact of a CI run:
    all of it is executed, and nothing in it is changed.
    """
    if schedule is None and Path(scenario).is_dir():
        return replay_store(Path(scenario), pages=pages, as_json=as_json, warn=_warn)
    if test := tested_id("" if schedule is None else scenario, schedule or scenario):
        return replay_test(test, schedule or scenario, pages=pages, as_json=as_json)
    if schedule is None and not scenario.startswith("h1."):
        raise UsageError(f"{scenario!r} is no folder and no token: name a schedule, too")
    scenario, schedule = ("", scenario) if schedule is None else (scenario, schedule)
    given = given_schedule(scenario, schedule, storage=storage, shapes=shapes, faults=split(faults), fix=fix)
    target, text = given.target, given.text
    if isinstance(given.schedule, str):
        outcome = run_replay_text(target, given.schedule)
    else:
        outcome = run_replay(target, given.schedule)
    execution = outcome.execution
    broken = execution.violations
    page = ""
    if pages is not None:
        line = shlex.join([program_name(), "replay", *filter(None, (scenario, schedule))])
        page = write_replayed(pages, target, given.schedule, replay=line)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "scenario": target.name,
                    "storage": target.setup["storage"],
                    "verdict": "violation" if broken else "none-found",
                    "rung": execution.rung.label,
                    "oracle": broken[0].oracle if broken else None,
                    "message": broken[0].message if broken else None,
                    "text": text,
                    "same_trace": outcome.same_trace,
                    "facts": execution.schedule.facts,
                    "turns": execution.schedule.turns,
                    "trace": [turn._asdict() for turn in execution.trace],
                    **({} if pages is None else {"page": page or None}),
                },
                indent=2,
            )
        )
    else:
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
        if page:
            click.echo(f"page: {page}")
    if outcome.same_trace is False and fix is None:
        return DIVERGED
    return FOUND if broken else 0


app.add_command(catalogue)
app.add_command(versions)
app.add_command(grade_command)
app.add_command(explain_command)
app.add_command(export_command)


def _warn(line: str) -> None:
    click.echo(f"harness: {line}", err=True)


def _full_trace(trace: Any) -> list[str]:
    return [f"  {turn.number:5d} {turn.now_s:9.6f}  {turn.lane}  {turn.what}  {turn.where}".rstrip() for turn in trace]


def _parse_rung(text: str) -> Rung:
    try:
        return Rung.parse(text)
    except KeyError:
        raise unknown("rung", name=text, known=[rung.label for rung in Rung]) from None


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


def _status(result: SearchResult) -> int:
    if result.interrupted:
        return INTERRUPTED
    statuses = {"violation": FOUND, "nondeterministic": DIVERGED, "unfinished": UNFINISHED}
    return statuses.get(result.verdict, 0)


def _one_object(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first violation, or the first result; all of them are under ``results`` when there are more."""
    first = next((item for item in objects if item["verdict"] == "violation"), objects[0])
    return first if len(objects) == 1 else {**first, "results": objects}


def _scenario_object(scenario: Scenario, file: Path) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "file": str(file),
        "storages": list(scenario.storages),
        "package": scenario.package,
        "affected": scenario.affected,
        "oracles": list(scenario.oracles),
        "rung": scenario.rung.label,
        "reference": scenario.reference,
        "requires": list(scenario.requires),
        "missing": missing_requirement(scenario) or None,
        "summary": scenario.summary,
    }


@contextmanager
def _progress(target: Target) -> Iterator[Callable[[int, str], None] | None]:
    """Show one line that moves while a search runs on a terminal; nothing when piped."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(f"{target.name} on {target.setup.get('storage', '')}") as status:

        def tick(executions: int, phase: str) -> None:
            if executions % 5 == 1:
                status.update(f"{target.name} on {target.setup.get('storage', '')}: {executions} executions ({phase})")

        yield tick


app.add_command(prove)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    try:
        status = app(arguments, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = USAGE
    except click.ClickException as error:
        click.echo(f"harness: {error.format_message()}", err=True)
        status = USAGE
    except DivergenceError as error:
        click.echo(f"harness: {error}", err=True)
        status = DIVERGED
    except HarnessError as error:
        click.echo(f"harness: {error}", err=True)
        status = USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("harness: interrupted", err=True)
        status = INTERRUPTED
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
