"""``harness catalogue --explain``: why each known bug fails, and whether its export shows it on the stock loop.

Owns the page and its rows; must not know how an explanation or an export is made: it runs the commands that do.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.adapters.loading import missing_requirement
from harness.adapters.uv import Environment, Environments
from harness.commands.versions import command_in
from harness.model.errors import UsageError
from harness.model.scenario import Scenario
from harness.report.export.probe import probe

PAGE = Path("docs") / "explanations.md"
_HEADER = ("scenario", "release, storage", "rung", "executions", "deviations", "deciding ordering", "export")
_ABOUT = """# Explanations

Written by `harness catalogue --explain`: each known bug on the last affected release, on the first storage that shows
it. *Deviations* is the smallest failing schedule. The *deciding ordering* separates every failing execution that was
looked at from every passing one; where there is none, no ordering of up to three pairs of events does, or no execution
passed. An *export* was run on the stock loop, with no harness: where it fails there, and the bug is fixed in a later
release, it was run on that one, too.

"""
# How the reason of a refusal begins: it names what the row is about.
_FINDING = r"^\S+ on \S+ \(.*\):? "
_NONE = "none: no ordering separates failing from passing executions"
_ALWAYS = "none: every execution that was looked at fails"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page."""

    scenario: str
    place: str
    rung: str = "-"
    executions: str = "-"
    deviations: str = "-"
    deciding: str = "-"
    export: str = "-"

    def cells(self) -> tuple[str, ...]:
        """Return the line in the order of the header."""
        line = (self.scenario, self.place, self.rung, self.executions, self.deviations, self.deciding, self.export)
        return tuple(cell.replace("|", "\\|").replace("\n", " ") for cell in line)


def explained(
    scenario: Scenario, file: Path, *, cache: Path, found_on: str, clean: str, tell: Callable[[str], None]
) -> Row:
    """Search, explain and export one scenario.

    found_on, clean: what the catalogue says of releases that have the bug, and of some that do not. tell: called
    before something slow begins.
    What cannot be run here is a row that says why.
    """
    environments = Environments(cache, scenario.package, extra=scenario.requires)
    try:
        release, command = _affected(scenario, environments, found_on, tell)
    except UsageError as error:
        return Row(scenario.name, f"not run here: {error}")
    reference = f"{file}::{scenario.name}"
    for storage in scenario.breaks_on or tuple(scenario.storages):
        tell(f"{scenario.name} on {storage}, {scenario.package} {release}")
        options = ["--json", "--no-database", "--no-store", "--storage", storage]
        found = _object(command, ["search", reference, *options])
        if found.get("verdict") == "violation":
            break
    else:
        return Row(scenario.name, f"{release}: {found.get('error') or found.get('verdict')}")
    fixed = _fixed(scenario, environments, clean, release)
    return Row(
        scenario.name,
        f"{release}, {storage}",
        found["rung"],
        str(found["executions"]),
        f"{found['deviations']}: `{found['text']}`",
        _deciding(found) or _undecided(command, reference, found["schedule"]),
        _export(command, reference, found["schedule"], fixed),
    )


def _affected(
    scenario: Scenario, environments: Environments, found_on: str, tell: Callable[[str], None]
) -> tuple[str, list[str]]:
    """Return the release to look at, and the command line of the harness there."""
    if not missing_requirement(scenario):
        installed = _object([sys.executable, "-c", _VERSION.format(scenario.package)], [])
        if installed["version"] in SpecifierSet(scenario.affected):
            return installed["version"], [sys.executable, "-m", "harness"]
    affected = SpecifierSet(scenario.affected)
    inside = [text for text in _releases(found_on) if text in affected]
    release = max(inside, key=Version) if inside else environments.latest(scenario.affected)
    return release, command_in(environments.get(release, tell=tell))


_VERSION = "import importlib.metadata, json; print(json.dumps(dict(version=importlib.metadata.version({!r}))))"


def _object(command: Sequence[str], arguments: Sequence[str]) -> dict[str, Any]:
    """Return the object that a command prints, or its error line under ``error``."""
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return {"error": lines[-1].removeprefix("harness: ")}
    return found


def _fixed(scenario: Scenario, environments: Environments, clean: str, release: str) -> Environment | None:
    """Return the environment of the first release after ``release`` that the catalogue calls clean, if it is kept."""
    known = _releases(re.sub(r"[^;]*cannot run", "", clean))
    later = [text for text in known if Version(text) > Version(release) and text not in SpecifierSet(scenario.affected)]
    return environments.get(min(later, key=Version)) if later else None


def _releases(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)+", text)


def _deciding(found: dict[str, Any]) -> str:
    names = [f"`{name}`" for name in found.get("deciding") or ()]
    return " and ".join(f"{first} before {second}" for first, second in zip(names[::2], names[1::2], strict=True))


def _undecided(command: Sequence[str], reference: str, token: str) -> str:
    """Say why nothing decides."""
    explanation = _object(command, ["explain", reference, token, "--json"])
    return _NONE if explanation.get("passing") else _ALWAYS


def _export(command: Sequence[str], reference: str, token: str, fixed: Environment | None) -> str:
    """Say how the export did: as a test, or, where pytest cannot show it, as a script."""
    refused = ""
    for form in ([], ["--script"]):
        shown = _object(command, ["export", reference, token, "--json", *form])
        if "error" in shown:
            return f"refused: {re.sub(_FINDING, '', shown['error'])}"
        if not shown["fails_on_stock_loop"]:
            refused = refused or f"refused: {shown['detail']}"
            continue
        said = f"{shown['lines']} lines; fails on the stock loop"
        if fixed is not None:
            again = probe(shown["source"], python=fixed.python, script=bool(form))
            said += f", {'passes' if again.passes else 'does not pass'} on {fixed.version}"
        return f"{said} (as a script; as a test {refused})" if form else said
    return refused


def rows_in(file: Path) -> dict[str, Row]:
    """Return the rows of a page by scenario; nothing when there is no such file."""
    if not file.is_file():
        return {}
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.replace("\\|", "|") for cell in re.split(r"(?<!\\) \| ", line[2:-2])] for line in lines[2:]]
    return {row[0]: Row(*row) for row in cells if len(row) == len(_HEADER)}


def page(rows: Sequence[Row]) -> str:
    """Return the page."""
    lines = [_HEADER, ("---",) * len(_HEADER), *(row.cells() for row in rows)]
    return _ABOUT + "".join(f"| {' | '.join(line)} |\n" for line in lines)
