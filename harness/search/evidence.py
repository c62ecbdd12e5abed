"""Evidence: executions around one failing schedule, as samples that a separation must agree with.

Owns which schedules are executed; must not know which ordering they will support.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.choice import ChoicePoint, Scheduler, draw_other
from harness.model.outcome import Execution, Turn
from harness.model.schedule import Discipline, Schedule
from harness.schedulers.ranks import Ranks
from harness.search.events import Namer, shows_at
from harness.search.readable import Readable
from harness.search.recording import Labelled, Planned
from harness.search.separate import Sample
from harness.search.target import Runner

# Choices that say what happens, and not in which order.
_SETTING = ("shape", "fault", "order", "members", "program")


# Kind and name of a choice, and how often that name had come up by then.
Name = tuple[str, str, int]


class Evidence:
    """The distinct executions of one target, the failing schedule first.

    samples: distinct by the order of their events. executions: all that were made.
    """

    def __init__(self, runner: Runner, schedule: Schedule, *, oracle: str) -> None:
        self._runner = runner
        self._schedule = schedule
        self._oracle = oracle
        self._seen: dict[tuple[str, ...], None] = {}
        self._alike: Counter[Any] = _setting(schedule)
        self._wanted: dict[Name, int] = {}
        self.plan = {decision.index: decision.value for decision in schedule.decisions}
        self.samples: list[Sample] = []
        self.executions = 0

    def execute(self, plan: Mapping[int, int]) -> Planned:
        """Execute a plan of the schedule's own discipline; return its scheduler, which saw the choices."""
        planned = Labelled(plan)
        self._add(self._run(planned, self._schedule.discipline))
        if not self._wanted and plan == self.plan:
            self._wanted = named_values(plan, planned.names)
        return planned

    def draw(self, source: random.Random, *, alike: bool, holds: Readable | None = None) -> Sample:
        """Execute random ranks. alike: with the schedule's own shapes and faults. holds: what must wait for what."""
        scheduler: Scheduler = Setting(self._wanted, Drawn(source), alike=alike)
        if holds is not None:
            scheduler = Aimed(holds, scheduler)
        return self._add(self._run(scheduler, "ranks"))

    def _run(self, scheduler: Scheduler, discipline: Discipline) -> Execution:
        self.executions += 1
        return self._runner.run(scheduler, tracing=True, discipline=discipline, rung=self._schedule.rung)

    def _add(self, execution: Execution) -> Sample:
        broken = next((item for item in execution.violations if item.oracle == self._oracle), None)
        positions, places = _positions(execution.trace)
        before = len(execution.trace) if broken is None else shows_at(execution.trace, broken, execution.ending)
        alike = _setting(execution.schedule) == self._alike
        sample = Sample(broken is not None, positions, places, before, execution.schedule, alike)
        key = (*positions, str(sample.fails))
        if key not in self._seen:
            self._seen[key] = None
            self.samples.append(sample)
        return sample


class Setting:
    """Takes some choices as a schedule has them, by name, and leaves the rest to another scheduler.

    wanted: value by kind, name and how often that name came up. alike: all shapes, faults and set orders are the
    schedule's; else only the program is, where the search makes it up.
    """

    def __init__(self, wanted: Mapping[Name, int], inner: Scheduler, *, alike: bool) -> None:
        self._wanted = wanted
        self._kinds = _SETTING if alike else ("program",)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._inner = inner

    def choose(self, point: ChoicePoint, /) -> int:
        """Return what the schedule has for a choice of this name, and what the inner scheduler says elsewhere."""
        if point.kind not in self._kinds:
            return self._inner.choose(point)
        name = point.kind, str(point.subject or "")
        self._counts[name] += 1
        value = self._wanted.get((*name, self._counts[name]), 0)
        return value if value < len(point.enabled) else 0


class Drawn:
    """Random ranks for ops; of other choices the default half of the time."""

    def __init__(self, source: random.Random) -> None:
        self._ranks = Ranks(source)
        self._source = source

    def choose(self, point: ChoicePoint, /) -> int:
        """Return a rank for a parked op, and any index elsewhere."""
        return self._ranks.choose(point) if point.kind == "hold" else draw_other(point, self._source)


class Aimed:
    """Holds what a readable schedule holds; the rest is another scheduler's."""

    def __init__(self, holds: Readable, inner: Scheduler) -> None:
        self._holds = holds
        self._inner = inner

    def choose(self, point: ChoicePoint, /) -> int:
        """Return a hold for what must wait, and what the inner scheduler says elsewhere."""
        value = self._inner.choose(point)
        return (self._holds.choose(point) or value) if point.kind == "hold" else value

    def heed(self, turn: Turn) -> None:
        """Let go what was held until now."""
        self._holds.heed(turn)


def _setting(schedule: Schedule) -> Counter[Any]:
    return Counter((item.kind, item.label, item.option) for item in schedule.decisions if item.kind in _SETTING)


def named_values(plan: Mapping[int, int], names: Sequence[tuple[str, str]]) -> dict[Name, int]:
    """Return the values of a plan by name. names: kind and subject of each choice of its execution, by index."""
    counts: Counter[tuple[str, str]] = Counter()
    found: dict[Name, int] = {}
    for index, name in enumerate(names):
        counts[name] += 1
        if index in plan:
            found[(*name, counts[name])] = plan[index]
    return found


def _positions(trace: Sequence[Turn]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the position and the source line of each event."""
    namer = Namer()
    names = [(namer.name(turn), position, turn.where) for position, turn in enumerate(trace)]
    positions = {name: position for name, position, _ in names if name}
    return positions, {name: where for name, _, where in names if name}
