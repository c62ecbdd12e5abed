"""Targets of scenarios as plain values: what another process needs to make the same one.

Owns the names that say which target it is; must not know who makes it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path

from harness.adapters.loading import load_scenarios
from harness.adapters.targets import scenario_target
from harness.model.rung import Rung
from harness.model.scenario import Scenario
from harness.search.target import Target


@dataclass(frozen=True, slots=True)
class ScenarioRecipe:
    """A scenario on one storage. reference: as ``load_scenarios`` takes it. None: as the scenario says."""

    reference: str
    name: str
    storage: str
    fix: str = ""
    rung: str | None = None
    clock: str | None = None
    shapes: bool | None = None
    faults: tuple[str, ...] | None = None

    def scenario(self) -> Scenario:
        """Return the scenario."""
        (found,) = (item for item in load_scenarios(self.reference) if item.name == self.name)
        return found

    def anywhere(self) -> ScenarioRecipe:
        """Return the same recipe with its file as an absolute path: other processes may stand in other folders."""
        if ":" in self.reference.partition("::")[0]:
            return self
        file = Path(inspect.getsourcefile(self.scenario().program) or "").resolve()
        return replace(self, reference=f"{file}::{self.name}")

    def target(self) -> Target:
        """Return the target; raises UsageError for a name that does not exist."""
        rung = None if self.rung is None else Rung.parse(self.rung)
        return scenario_target(
            self.scenario(),
            self.storage,
            fix=self.fix,
            shapes=self.shapes,
            faults=self.faults,
            rung=rung,
            clock=self.clock,
        )
