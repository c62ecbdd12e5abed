"""``harness catalogue``: what each scenario of a folder breaks, where, and how soon that is found.

Owns the table and the file in which it is recorded; must not know how a release is searched.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.adapters.loading import FOLDER, scenario_files, scenarios_in
from harness.adapters.uv import Environments, default_cache
from harness.commands.explanations import PAGE, explained, page, rows_in
from harness.commands.versions import Row, run_in
from harness.model.errors import UsageError
from harness.model.registry import unknown
from harness.model.scenario import Scenario

RECORD = Path("docs") / "catalogue.md"
_HEADER = ("scenario", "package", "affected", "oracle", "executions until found", "clean on")
_CLEAN = ("none-found", "proved")
# What a search says of a release that a scenario, or an adapter, was not written for.
_DOES_NOT_FIT = ("does not import", "the program raised", "which is not installed")
_ABOUT = """# Catalogue

Written by `harness catalogue --record`: each scenario on the first and the last release of its affected range, with the
storages on which it was found and the executions that it took, and on the releases right before and after the range.

"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the catalogue. found, clean: releases with what was seen there, or "-" where nobody looked."""

    scenario: str
    package: str
    affected: str
    oracle: str
    found: str = "-"
    clean: str = "-"

    def cells(self) -> tuple[str, ...]:
        """Return the line in the order of the header."""
        return self.scenario, self.package, self.affected, self.oracle, self.found, self.clean


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Where scenarios are.")
@click.option("--file", type=click.Path(path_type=Path), default=RECORD, help="Where the table is recorded.")
@click.option("--record", is_flag=True, help="Search what is not recorded yet, or states another range, and write it.")
@click.option("--again", is_flag=True, help="With --record: search everything again.")
@click.option("--with", "extra", multiple=True, help="Also install this, on the releases that it fits; repeatable.")
@click.option("--explain", "explain", is_flag=True, help="Explain and export each, and write --page.")
@click.option("--only", metavar="NAME", multiple=True, help="With --explain: these scenarios; repeatable.")
@click.option("--page", "page_file", type=click.Path(path_type=Path), default=PAGE, help="Where explanations go.")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Where environments are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def catalogue(
    folder: Path,
    file: Path,
    record: bool,
    again: bool,
    extra: tuple[str, ...],
    explain: bool,
    only: tuple[str, ...],
    page_file: Path,
    cache: Path | None,
    as_json: bool,
) -> None:
    """List known bugs: affected range, oracle, executions until found.

    The last columns come from the recorded file. --record searches the releases at both ends of each range, in
    environments made by uv, which takes minutes. --explain explains and exports each on its last affected release.
    """
    if not folder.is_dir():
        raise UsageError(f"no such folder: {folder}")
    known = recorded(file)
    if explain:
        _explain(folder, known, cache or default_cache(), page_file, only=only)
        return
    scenarios = {f"{path}::{item.name}": item for path in scenario_files(folder) for item in scenarios_in(path)}
    table = {reference: _entry(item, known) for reference, item in scenarios.items() if item.affected}
    releases: dict[str, list[str]] = {}
    for reference, entry in table.items() if record else ():
        if not again and entry.found != "-":
            continue
        requires = scenarios[reference].requires
        made = [Environments(cache or default_cache(), entry.package, extra=[*requires, *more]) for more in (extra, ())]
        if entry.package not in releases:
            releases[entry.package] = made[0].releases()
        table[reference] = searched(entry, reference, made[: 2 if extra else 1], releases[entry.package])
        _write(file, list(table.values()))  # so that an interruption loses one line
    entries = list(table.values())
    if record:
        _write(file, entries)
    if as_json:
        click.echo(json.dumps({"catalogue": [asdict(entry) for entry in entries]}, indent=2))
    else:
        click.echo(plain(entries))


def _write(file: Path, entries: Sequence[Entry]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_ABOUT + markdown(entries), encoding="utf-8")


def _entry(scenario: Scenario, known: Mapping[str, Entry]) -> Entry:
    """Return the recorded line of a scenario, or a blank one where it states something else now."""
    entry = Entry(scenario.name, scenario.package, scenario.affected, ", ".join(oracles_of(scenario)))
    old = known.get(scenario.name, entry)
    return old if old.cells()[:4] == entry.cells()[:4] else entry


def _explain(folder: Path, known: Mapping[str, Entry], cache: Path, page_file: Path, *, only: tuple[str, ...]) -> None:
    """Write the page of explanations, after each row, so that an interrupt loses one. only: other rows stay."""
    before = rows_in(page_file)
    listed = [(path, item) for path in scenario_files(folder) for item in scenarios_in(path) if item.affected]
    for name in only:
        if name not in [item.name for _, item in listed]:
            raise unknown("scenario", name=name, known=[item.name for _, item in listed])
    rows = {item.name: before[item.name] for _, item in listed if item.name in before}
    for path, scenario in listed:
        if only and scenario.name not in only:
            continue
        entry = known.get(scenario.name, Entry(scenario.name, scenario.package, scenario.affected, ""))
        rows[scenario.name] = explained(
            scenario, path, cache=cache, found_on=entry.found, clean=entry.clean, tell=_tell
        )
        page_file.parent.mkdir(parents=True, exist_ok=True)
        page_file.write_text(page([rows[item.name] for _, item in listed if item.name in rows]), encoding="utf-8")
    shown = sum("; fails on the stock loop" in row.export for row in rows.values())
    click.echo(f"{page_file}: {len(rows)} known bugs, {shown} of them shown by an export on the stock loop")


def _tell(line: str) -> None:
    click.echo(line, err=True)


def oracles_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the oracles that judge a scenario; one without any has assertions of its own."""
    return tuple(name.replace("-", "_") for name in scenario.oracles) or ("its own assertion",)


def searched(entry: Entry, reference: str, environments: Sequence[Environments], releases: Sequence[str]) -> Entry:
    """Return ``entry`` with what its scenario does on the releases at both ends of its range, and next to them.

    environments: the first of them that can be made of a release is the one to search in.
    """
    inside, outside = ends(releases, entry.affected)
    found = {version: _summary(_run(reference, environments, version)) for version in inside}
    clean = {version: _summary(_run(reference, environments, version)) for version in outside}
    return replace(entry, found=_grouped(found), clean=_grouped(clean))


def _grouped(seen: Mapping[str, str]) -> str:
    """Return releases with what was seen there, those alike together; nothing is said of a clean one."""
    parts = []
    for summary in dict.fromkeys(seen.values()):
        alike = ", ".join(version for version, other in seen.items() if other == summary)
        parts.append(alike if summary == "clean" else f"{alike}: {summary}")
    return "; ".join(parts) or "-"


def ends(releases: Sequence[str], affected: str) -> tuple[list[str], list[str]]:
    """Return the first and the last of ``releases`` in the range, and those right before and after it."""
    ordered = sorted(releases, key=Version)
    inside = list(SpecifierSet(affected).filter(ordered))
    if not inside:
        return [], []
    first, last = ordered.index(inside[0]), ordered.index(inside[-1])
    outside = ordered[first - 1 : first] + ordered[last + 1 : last + 2]
    return list(dict.fromkeys([inside[0], inside[-1]])), outside


def _run(reference: str, environments: Sequence[Environments], version: str) -> list[Row]:
    for preferred in environments[:-1]:
        with contextlib.suppress(UsageError):  # a storage's package may not fit this release
            return run_in(preferred.get(version), [reference, "--json", "--no-database"])
    return run_in(environments[-1].get(version), [reference, "--json", "--no-database"])


def _summary(rows: Sequence[Row]) -> str:
    if rows[0].verdict == "error":
        fits = not any(text in str(rows[0]) for text in _DOES_NOT_FIT)
        return str(rows[0]) if fits else "cannot run"
    bad = [f"{row.storage} {row.executions}" for row in rows if row.verdict == "violation"]
    undecided = [f"{row.storage} {row.verdict}" for row in rows if row.verdict not in (*_CLEAN, "violation")]
    return ", ".join(bad + undecided) or "clean"


def recorded(file: Path) -> dict[str, Entry]:
    """Return the lines of a recorded table by scenario; nothing when there is no such file."""
    if not file.is_file():
        return {}
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in lines[2:]]
    return {row[0]: Entry(*row) for row in rows if len(row) == len(_HEADER)}


def markdown(entries: Sequence[Entry]) -> str:
    """Return the table in Markdown."""
    lines = [_HEADER, ("---",) * len(_HEADER), *(entry.cells() for entry in entries)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plain(entries: Sequence[Entry]) -> str:
    """Return the table in columns."""
    lines = [_HEADER, *(entry.cells() for entry in entries)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(_HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
