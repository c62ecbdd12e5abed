"""``harness versions``: one scenario against many releases, each in its own environment.

Owns the table of verdicts and the bisection; must not know how an environment is made.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import harness
from harness.adapters.loading import load_scenarios
from harness.adapters.uv import Environment, Environments, default_cache
from harness.commands.status import INTERRUPTED
from harness.model.errors import UsageError
from harness.model.scenario import Scenario
from harness.search.bisect import Affected, bisect

# Imports this harness and nothing else of the environment that runs this process.
_BOOT = """
import importlib.metadata, importlib.util, sys
from packaging.version import Version
folder, package, expected, *arguments = sys.argv[1:]
found = importlib.metadata.version(package)
if Version(found) != Version(expected):
    sys.exit(f"harness: {package} {found} was found instead of {expected}: is it on PYTHONPATH?")
spec = importlib.util.spec_from_file_location("harness", f"{folder}/__init__.py", submodule_search_locations=[folder])
sys.modules["harness"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from harness.cli import main
main(arguments)
"""
_STATUS = {"violation": 1, "nondeterministic": 4, "error": 2, "unfinished": 3}


@dataclass(frozen=True, slots=True)
class Row:
    """What one scenario did on one storage of one release. found: the JSON object of its search."""

    version: str
    scenario: str
    storage: str
    verdict: str
    executions: int | None = None
    error: str | None = None
    found: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.verdict == "violation":
            return f"violation ({self.executions})"
        return self.verdict if self.error is None else f"error: {self.error}"

    def as_object(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        keys = ("rung", "seconds", "oracle", "message", "text", "schedule", "found_by")
        more = {key: self.found.get(key) for key in keys}
        plain = {name: getattr(self, name) for name in ("version", "scenario", "storage", "verdict", "executions")}
        return {**plain, "error": self.error, **more}


@click.command()
@click.argument("scenario", metavar="SCENARIO")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- SEARCH OPTIONS]")
@click.option("--package", default="", help="Distribution to vary. Default: the scenario's.")
@click.option("--versions", "releases", default="", help="1.19.0,1.20.0 or LOW..HIGH. Default: all releases.")
@click.option("--bisect", "only_ends", is_flag=True, help="Find the first and last affected release, trying few.")
@click.option("--storage", multiple=True, help="Storage to run on; repeatable. Default: all of the scenario.")
@click.option("--budget", type=click.IntRange(min=1), help="Executions per storage.")
@click.option("--with", "extra", multiple=True, help="Another requirement of the scenario; repeatable.")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Where environments are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def versions(
    scenario: str,
    options: tuple[str, ...],
    package: str,
    releases: str,
    only_ends: bool,
    storage: tuple[str, ...],
    budget: int | None,
    extra: tuple[str, ...],
    cache: Path | None,
    as_json: bool,
) -> int:
    """Search SCENARIO on other releases of a package, each in an environment of its own.

    The environments are made by uv and kept. What follows -- is passed on to `harness search`.
    """
    known = _known(scenario, needed=not package)
    package = package or known[0].package
    needs = [*extra, *(text for item in known for text in item.requires)]
    environments = Environments(cache or default_cache(), package, extra=needs)
    chosen = _chosen(environments, releases)
    arguments = [scenario, "--json", "--no-database", *options]
    for name in storage:
        arguments += ["--storage", name]
    if budget is not None:
        arguments += ["--budget", str(budget)]
    rows: dict[str, list[Row]] = {}

    def is_bad(version: str) -> bool:
        if version not in rows:
            environment = environments.get(version, tell=_tell)
            _tell(f"searching on {package} {environment.version}")
            rows[version] = run_in(environment, arguments)
        return any(row.verdict == "violation" for row in rows[version])

    affected: Affected | None = None
    if only_ends:
        ordered = sorted(chosen, key=Version)
        ranges = [SpecifierSet(item.affected) for item in known if item.affected]
        likely = [version for version in ordered if any(version in stated for stated in ranges)]
        affected = bisect(ordered, is_bad, likely=likely)
    else:
        for version in chosen:
            environments.get(version, tell=_tell)  # all of them first: a wrong one is found before any search
        for version in chosen:
            is_bad(version)
    found = [row for version in sorted(rows, key=Version) for row in rows[version]]
    if as_json:
        click.echo(json.dumps(_as_object(scenario, package, found, affected), indent=2))
    else:
        click.echo(table(found, package=package))
        if affected is not None:
            click.echo(sentence(affected, rows))
    seen = {row.verdict for row in found}
    return next((status for verdict, status in _STATUS.items() if verdict in seen), 0)


def command_in(environment: Environment) -> list[str]:
    """Return the command line of this harness in ``environment``."""
    folder = Path(harness.__file__).parent
    return [str(environment.python), "-c", _BOOT, str(folder), environment.package, environment.version]


def run_in(environment: Environment, arguments: Sequence[str]) -> list[Row]:
    """Run ``harness search`` in ``environment`` and return its rows; what goes wrong there is a row as well.

    Raises KeyboardInterrupt when the search was interrupted.
    """
    done = subprocess.run([*command_in(environment), "search", *arguments], capture_output=True, text=True, check=False)
    if done.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    try:
        first = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode} and without a word"]
        error = re.sub(r" \([^()]*site-packages[^()]*\)", "", lines[-1].removeprefix("harness: "))
        return [Row(environment.version, "", "", "error", error=error)]
    return [_row(environment.version, found) for found in first.get("results", [first])]


def _row(version: str, found: dict[str, Any]) -> Row:
    verdict, error = found["verdict"], None
    message = found["message"] or ""
    if found["oracle"] == "assertion" and not found["deviations"] and "raised AssertionError" not in message:
        # the program breaks by itself, in the default order: it does not fit this release, and nothing was searched
        verdict, error = "error", message
    return Row(version, found["scenario"], found["storage"], verdict, found["executions"], error, found)


def table(rows: Sequence[Row], *, package: str) -> str:
    """Return the table version x storage x verdict; a storage is named with its scenario if there are several."""
    several = len({row.scenario for row in rows if row.scenario}) > 1

    def column(row: Row) -> str:
        return f"{row.scenario}[{row.storage}]" if several else row.storage

    columns = list(dict.fromkeys(column(row) for row in rows if row.storage)) or ["verdict"]
    lines = [[package, *columns]]
    for version in dict.fromkeys(row.version for row in rows):
        own = [row for row in rows if row.version == version]
        if not own[0].storage:
            lines.append([version, str(own[0])])
            continue
        cells = {column(row): str(row) for row in own}
        lines.append([version, *(cells.get(name, "-") for name in columns)])
    # an error fills its line and widens no column
    full = [line for line in lines if len(line) == len(lines[0]) and not line[1].startswith("error: ")]
    widths = [max(len(line[index]) for line in full) for index in range(len(lines[0]))]
    widths[0] = max(len(line[0]) for line in lines)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip() for line in lines
    )


def sentence(affected: Affected, rows: dict[str, list[Row]]) -> str:
    """Say what a bisection found, and what its neighbours did."""

    def neighbour(version: str | None, end: str) -> str:
        if version is None:
            return end
        errors = all(row.verdict == "error" for row in rows[version])
        return f"{version} {'cannot run it' if errors else 'is clean'}"

    if affected.first is None:
        return "no affected release found"
    before = neighbour(affected.before, "the oldest that was tried")
    after = neighbour(affected.after, "the newest that was tried")
    return f"first affected: {affected.first} ({before}); last affected: {affected.last} ({after})"


def _chosen(environments: Environments, text: str) -> list[str]:
    """Return the releases that ``--versions`` means, each once."""
    low, dots, high = text.partition("..")
    if dots or not text.strip():
        return environments.releases(low.strip(), high.strip())
    names = [word.strip() for word in text.split(",") if word.strip()]
    if not names:
        raise UsageError(f"no versions in {text!r}: write 1.19.0,1.20.0 or 1.0.0..1.23.0")
    return list(dict.fromkeys(names))


def _known(reference: str, *, needed: bool) -> list[Scenario]:
    """Return the scenarios, or nothing when they do not load in this environment and are not needed."""
    try:
        return load_scenarios(reference)
    except UsageError as error:
        if needed or "does not import" not in str(error):
            raise
        return []


def _as_object(scenario: str, package: str, rows: Sequence[Row], affected: Affected | None) -> dict[str, Any]:
    return {
        "scenario": next((row.scenario for row in rows if row.scenario), scenario),
        "package": package,
        "rows": [row.as_object() for row in rows],
        "first_affected": affected.first if affected else None,
        "last_affected": affected.last if affected else None,
    }


def _tell(line: str) -> None:
    """Say what is being done, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"harness: {line}", err=True)
