"""The random phase: one scheduler with many seeds.

Owns the loop over seeds; must not know the scheduler.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from harness.model.choice import Scheduler
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.portfolio import Failure, Trial
from harness.search.recording import Recorded


class SchedulerPlugin(Protocol):
    """What a module in ``harness.schedulers`` offers as ``PLUGIN``."""

    discipline: Discipline
    rung: Rung | None  # the rung that it needs, or None for any
    make: Callable[[random.Random], Scheduler]


class Sampling:
    """Executes schedules of one random scheduler until the budget is spent."""

    def __init__(self, name: str, plugin: SchedulerPlugin, *, seed: int, rung: Rung, share: float = 1.0) -> None:
        self.name = name
        self._plugin = plugin
        self._random = random.Random(f"{name} {seed}")
        self._rung = rung
        self._share = share

    def look(self, trial: Trial) -> Failure | None:
        """Run executions until one fails or the share of the budget is spent."""
        allowance = trial.executions + int(trial.left * self._share)
        while trial.executions < allowance:
            seed = self._random.getrandbits(64)
            scheduler = Recorded(self._plugin.make(random.Random(seed)))
            execution = trial.run(scheduler, discipline=self._plugin.discipline, rung=self._rung)
            if execution.violations:
                return Failure(scheduler.plan, self._plugin.discipline, self._rung)
        return None
