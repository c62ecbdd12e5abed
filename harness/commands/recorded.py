"""From a schedule on a command line, a token or words, to the target that it belongs to.

Owns what ``replay``, ``explain`` and ``export`` share; must not run anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from harness.adapters.loading import load_scenarios
from harness.adapters.targets import scenario_target
from harness.model.errors import UsageError
from harness.model.scenario import Scenario
from harness.model.schedule import Schedule, parse_token
from harness.search.readable import schedule_text
from harness.search.target import Target


@dataclass(frozen=True, slots=True)
class Given:
    """A schedule that a user named. schedule: a recorded one, or words. text: it in words."""

    scenario: Scenario
    target: Target
    schedule: Schedule | str
    text: str


def schedule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that a schedule in words needs, and the fix of one that was recorded."""
    for option in (
        click.option("--fix", default=None, help="Fix candidate to apply; default: as recorded."),
        click.option("--faults", help="For a schedule in words: what may happen to a run."),
        click.option(
            "--shapes/--no-shapes", default=None, help="For a schedule in words: whether it names an await shape."
        ),
        click.option(
            "--storage", help="Storage to run on, for a schedule in words. Default: the first of the scenario."
        ),
    ):
        command = option(command)
    return command


def given_schedule(
    scenario: str,
    schedule: str,
    *,
    storage: str | None = None,
    shapes: bool | None = None,
    faults: tuple[str, ...] | None = None,
    fix: str | None = None,
) -> Given:
    """Return the schedule with its target.

    scenario: "" for a token, which carries the scenario's name. storage, shapes, faults: for a schedule in words.
    Raises UsageError for a token of another scenario, and TokenError for one that was damaged.
    """
    if " " in schedule:
        if not scenario:
            raise UsageError("a schedule in words does not say of which scenario it is: name the scenario, too")
        item = load_scenarios(scenario)[0]
        use_shapes = " waits " in schedule if shapes is None else shapes
        name = storage or next(iter(item.storages))
        return Given(
            item, scenario_target(item, name, fix=fix or "", shapes=use_shapes, faults=faults), schedule, schedule
        )
    recorded = parse_token(schedule)
    if not scenario and "scenario" not in recorded.setup:
        raise UsageError(f"the token is of the test {recorded.setup.get('test', '')!r}, not of a scenario")
    found = load_scenarios(scenario or recorded.setup["scenario"])
    item = _of_token(found, recorded.setup, scenario=scenario)
    target = scenario_target(
        item,
        recorded.setup["storage"],
        fix=recorded.setup.get("fix", "") if fix is None else fix,
        shapes=recorded.setup.get("shapes") == "on",
        faults=split(recorded.setup.get("faults", "")),
        rung=recorded.rung,
        clock=recorded.setup.get("clock", "increasing"),
    )
    return Given(item, target, recorded, schedule_text(recorded.decisions))


def _of_token(found: list[Scenario], setup: Mapping[str, str], *, scenario: str) -> Scenario:
    matching = [item for item in found if item.name == setup.get("scenario")]
    if not matching:
        raise UsageError(f"the token is of scenario {setup.get('scenario')!r}, which {scenario} does not hold")
    return matching[0]


def split(text: str | None) -> tuple[str, ...] | None:
    """Return the words of a comma-separated option, or None when it was not given."""
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())
