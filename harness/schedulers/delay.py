"""Delay-bounded scheduling: the default order but for a few delays, fewest delays first.

Owns the schedules that are still to try; must not know the lanes.
"""

from __future__ import annotations

import heapq
import random

from harness.model.choice import ChoicePoint
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline

# Schedules kept for later; beyond it those of the most delays are forgotten, and the space is never exhausted.
MAX_WAITING = 200_000

Plan = tuple[tuple[int, int], ...]


class Delayed:
    """Follows a plan: taking option v at a choice point delays the v options before it.

    Guarantee, of the sequence of executions: all schedules of at most b delays are executed before any of
    b + 1, each once, and when none is left all schedules were executed. Only n lanes that are ready together
    can be delayed past each other, so a bound of b admits at most (k n)^b schedules of k choice points.
    Source: Emmi, Qadeer and Rakamaric, "Delay-Bounded Scheduling", POPL 2011, section 3.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen: list[tuple[int, int]] = []  # index and number of options
        self._values = dict(plan)

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the planned value, or the default."""
        self.seen.append((point.index, len(point.enabled)))
        return min(self._values.get(point.index, 0), len(point.enabled) - 1)


class Frontier:
    """The schedules to try, fewest delays first. invariant: each extends an executed one after its last delay."""

    def __init__(self, bound: int | None) -> None:
        self._bound = bound
        self._waiting: list[tuple[int, int, Plan]] = [(0, 0, ())]
        self._order = 0
        self._last: Delayed | None = None
        self._whole = True

    def next(self) -> Delayed | None:
        """Return the next scheduler, or None when every schedule within the bound was tried."""
        self._extend()
        if not self._waiting:
            return None
        _, _, plan = heapq.heappop(self._waiting)
        self._last = Delayed(plan)
        return self._last

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to try."""
        self._extend()
        return self._whole and not self._waiting

    def _extend(self) -> None:
        if self._last is None:
            return
        last, self._last = self._last, None
        delays = sum(value for _, value in last.plan)
        after = last.plan[-1][0] if last.plan else -1
        for index, options in last.seen:
            for value in range(1, options) if index > after else ():
                if self._bound is not None and delays + value > self._bound:
                    break
                if len(self._waiting) >= MAX_WAITING:
                    self._whole = False
                    return
                self._order += 1
                heapq.heappush(self._waiting, (delays + value, self._order, (*last.plan, (index, value))))


class Scattered:
    """Spends a few delays at random choice points; used where nothing is kept between executions."""

    def __init__(self, source: random.Random, *, delays: int, points: int) -> None:
        self._at = sorted(source.randrange(points) for _ in range(delays))

    def choose(self, point: ChoicePoint, /) -> int:
        """Return one option later for each delay that falls here, at most the last."""
        return min(self._at.count(point.index), len(point.enabled) - 1)


class Plugin:
    """Makes delay-bounded schedulers, by iterative deepening. bound: the most delays; None for any number."""

    discipline: Discipline = "indices"
    rung: Rung | None = None
    learns = True
    systematic = True

    def __init__(self, bound: int | None = None) -> None:
        self._bound = bound

    def with_parameter(self, value: int) -> Plugin:
        """Return a plugin of bound ``value``, as in ``delay-2``."""
        return Plugin(max(0, value))

    def make(self, source: random.Random, history: History | None = None) -> Delayed | Scattered:
        """Return a scheduler for one execution; without a history, one of random delays."""
        if history is None:
            return Scattered(source, delays=2 if self._bound is None else self._bound, points=16)
        frontier: Frontier = history.memory.setdefault("delay", Frontier(self._bound))
        scheduler = frontier.next()
        if scheduler is None:
            history.exhausted = True
            return Delayed(())
        return scheduler


PLUGIN = Plugin()
