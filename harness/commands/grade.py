"""``harness grade``: candidate fixes against scenarios.

Owns the table of grades; must not know how a fix is applied.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from harness.adapters.loading import load_scenarios
from harness.adapters.targets import load_adapter, scenario_target
from harness.commands.storages import usable_here
from harness.model.registry import unknown
from harness.model.scenario import Scenario
from harness.search.survey import Survey, repaired, survey


@dataclass(frozen=True, slots=True)
class Grade:
    """What one fix does to one scenario on one storage.

    verdict: ``repairs`` (nothing fails any more), ``repairs part`` (some of what failed), ``repairs nothing``,
    ``breaks`` (something fails that did not), or ``no bug`` (nothing failed, and nothing does).
    repaired, failing: of the schedules that fail without the fix, how many pass with it, and how many there are.
    still: what is broken with the fix. shapes: the await shapes in which it is. hangs: whether a save that never
    finishes keeps a cancelled run from ending, and did not do so without the fix.
    """

    scenario: str
    storage: str
    fix: str
    verdict: str
    repaired: int
    failing: int
    executions: int
    hangs: bool
    still: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = self.verdict
        if self.failing:
            text += f" {self.repaired}/{self.failing}"
        return text + (" (can hang)" if self.hangs else "")


def grade(scenario: Scenario, storage: str, fix: str, *, budget: int, base: Survey, base_hangs: bool) -> Grade:
    """Survey ``scenario`` with ``fix`` and compare it with ``base``, the survey without."""
    target = scenario_target(scenario, storage, fix=fix)
    fixed = survey(target, budget=budget, plans=[outcome.plan for outcome in base.failing])
    passing, failing = repaired(base, {outcome.plan: outcome for outcome in fixed.outcomes})
    new = fixed.kinds - base.kinds
    if new:
        verdict = "breaks"
    elif not base.failing:
        verdict = "no bug"
    elif not fixed.failing:
        verdict = "repairs"
    else:
        verdict = "repairs part" if passing else "repairs nothing"
    return Grade(
        scenario=scenario.name,
        storage=storage,
        fix=fix,
        verdict=verdict,
        repaired=passing,
        failing=failing,
        executions=len(fixed.outcomes),
        hangs=not base_hangs and hangs(scenario, storage, fix, budget=budget),
        still=sorted({what for outcome in fixed.failing for what in outcome.what}),
        shapes=sorted({outcome.shape for outcome in fixed.failing}),
    )


def hangs(scenario: Scenario, storage: str, fix: str, *, budget: int) -> bool:
    """Return whether a save that never finishes can keep a cancelled run from ending."""
    adapter = load_adapter(scenario.adapter)
    if "hang" not in adapter.faults():
        return False
    target = scenario_target(scenario, storage, fix=fix, shapes=False, faults=("hang",))
    return "progress" in survey(target, budget=min(budget, 60)).kinds


@click.command("grade")
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--fix", "fixes", multiple=True, help="Fix candidate; repeatable. Default: all.")
@click.option("--storage", "storages", multiple=True, help="Storage; repeatable. Default: all of the scenario.")
@click.option("--budget", type=click.IntRange(min=1), default=120, show_default=True, help="Executions per cell.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def grade_command(
    scenarios: tuple[str, ...], fixes: tuple[str, ...], storages: tuple[str, ...], budget: int, as_json: bool
) -> int:
    """Say which schedules each fix repairs, what it breaks, and whether it can hang.

    Exit status 1 when a fix breaks something or leaves something broken.
    """
    chosen = [item for reference in scenarios for item in load_scenarios(reference)]
    grades: list[Grade] = []
    for scenario in chosen:
        known = load_adapter(scenario.adapter).fixes()
        for fix in fixes:
            if fix not in known:
                raise unknown("fix", name=fix, known=known)
        for storage in storages or usable_here(scenario):
            base = survey(scenario_target(scenario, storage), budget=budget)
            base_hangs = hangs(scenario, storage, "", budget=budget)
            for fix in fixes or known:
                result = grade(scenario, storage, fix, budget=budget, base=base, base_hangs=base_hangs)
                grades.append(result)
                if not as_json:
                    click.echo(f"{scenario.name} on {storage}: {fix} {result}")
                    for line in result.still[:3]:
                        click.echo(f"    still: {line.splitlines()[0]} ({', '.join(result.shapes)})")
    if as_json:
        click.echo(json.dumps({"grades": [_object(item) for item in grades]}, indent=2))
    else:
        click.echo("\n" + grade_table(grades))
    return 1 if any(item.verdict not in ("repairs", "no bug") for item in grades) else 0


def _object(item: Grade) -> dict[str, Any]:
    return asdict(item)


def grade_table(grades: list[Grade]) -> str:
    """Return the table scenario and storage x fix."""
    fixes = list(dict.fromkeys(item.fix for item in grades))
    rows = [("scenario", "storage", *fixes)]
    for key in dict.fromkeys((item.scenario, item.storage) for item in grades):
        cells = {item.fix: str(item) for item in grades if (item.scenario, item.storage) == key}
        rows.append((*key, *(cells.get(fix, "-") for fix in fixes)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
