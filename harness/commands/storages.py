"""Which storages of a scenario a command runs on when it is told none.

Owns the line about those that cannot be had; must not know what is done with the others.
"""

from __future__ import annotations

import click

from harness.adapters.targets import usable_storages
from harness.model.scenario import Scenario


def usable_here(scenario: Scenario) -> list[str]:
    """Return the storages of ``scenario`` whose packages are installed, and say which ones are left out."""
    usable, missing = usable_storages(scenario)
    for line in missing:
        click.echo(f"harness: {scenario.name}: left out: {line}", err=True)
    return usable
