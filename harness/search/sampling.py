"""The random phase: one scheduler with many seeds.

Owns the loop over seeds; must not know the scheduler.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Protocol

from harness.model.choice import Scheduler
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.learning import Watched
from harness.search.portfolio import Failure, Trial, first_failure


class SchedulerPlugin(Protocol):
    """What a module in ``harness.schedulers`` offers as ``PLUGIN``.

    rung: the rung that it needs, or None for any. An optional ``learns = True`` asks for a history of every
    execution, which costs a little on each turn; an optional ``systematic = True`` says that it draws nothing, so that
    another seed is no other search; an optional ``with_parameter(value)`` makes the plugin
    that is called ``name-value``.
    """

    discipline: Discipline
    rung: Rung | None

    def make(self, source: random.Random, history: History | None = None, /) -> Scheduler:
        """Return a scheduler for one execution; ``history`` is what earlier ones taught."""
        ...


class Sampling:
    """Executes schedules of one scheduler until the budget is spent, or it has nothing left to try.

    watched: learn from each execution even if the scheduler does not ask for it: others may.
    """

    def __init__(
        self, name: str, plugin: SchedulerPlugin, *, seed: int, rung: Rung, share: float = 1.0, watched: bool = False
    ) -> None:
        self.name = name
        self._plugin = plugin
        self._random = random.Random(f"{name} {seed}")
        self._rung = rung
        self._share = share
        self._learns = (watched or getattr(plugin, "learns", False)) and plugin.discipline == "indices"

    def look(self, trial: Trial) -> Failure | None:
        """Run executions until one fails or the share of the budget is spent."""
        return first_failure(trial, self.steps(trial), share=self._share)

    def steps(self, trial: Trial) -> Iterator[Failure | None]:
        """Run one execution per step; yield the failure of one that failed."""
        plugin = self._plugin
        while True:
            inner = plugin.make(random.Random(self._random.getrandbits(64)), trial.history)
            if trial.history.exhausted:
                trial.history.exhausted = False
                return
            scheduler = Watched(inner) if self._learns else inner
            execution = trial.run(scheduler, discipline=plugin.discipline, rung=self._rung)
            if isinstance(scheduler, Watched):
                trial.learn(scheduler)
            yield Failure(execution.schedule.plan(), plugin.discipline, self._rung) if execution.violations else None
