"""``harness list``: the scenarios of a folder.

Owns the output; must not run a scenario.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from harness.adapters.loading import FOLDER, missing_requirement, scenario_files, scenarios_in
from harness.commands.catalogue import catalogue
from harness.model.errors import UsageError
from harness.model.scenario import Scenario


@click.command("list")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Where scenarios are.")
@click.option("--catalogue", "known_bugs", is_flag=True, help="The table of known bugs: as `harness catalogue`.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
