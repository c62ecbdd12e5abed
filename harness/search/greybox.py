"""The greybox phase: schedules that reverse an order never seen reversed, and mutations of those that showed new ones.

Owns the corpus and the choice of what to try next; must not know a program.

An *order* "X before Y" holds every lane and op at Y back until one at X ran; X may be nothing, then Y waits until
nothing else can run. A schedule is a few orders and a scheduler for the rest. Source: Wolff et al., "Greybox Fuzzing
for Concurrency Testing", ASPLOS 2024, whose abstract schedules constrain pairs of events; our events are places.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from harness.model.choice import ChoicePoint, Option, Place, Scheduler, draw_other, offers_options
from harness.model.rung import Rung
from harness.search.learning import NOTHING, Coverage, Pair, Watched, lane_place
from harness.search.portfolio import Failure, Trial, first_failure
from harness.search.recording import HeldPlaces, Recorded

MAX_CORPUS = 64
MAX_ORDERS = 4
# The base of orders that are holds alone: they are executed as ranks.
HOLDS = "holds"
# Executions that only hold places; then other orders have half of them.
HOLDS_FIRST = 60


class Ordered:
    """Enforces orders while it can; what they leave open is decided by ``base``.

    base: ``default`` takes the first option, ``walk`` any, ``priorities`` the lane of the highest priority.
    """

    def __init__(self, orders: tuple[Pair, ...], *, base: str, source: random.Random) -> None:
        self._waiting: dict[Place, list[Place]] = {}  # what is held, and until which places were reached
        for first, second in orders:
            self._waiting.setdefault(second, []).append(first)
        self._base = base
        self._source = source
        self._priorities: dict[int, float] = {}
        self._places: dict[Any, tuple[Place, Place]] = {}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return an option that is not held back; the default of other kinds, or any for ``walk``."""
        if not offers_options(point):
            return draw_other(point, self._source) if self._base == "walk" else 0
        enabled = point.enabled
        free = range(len(enabled))
        if self._waiting:
            free = [at for at in free if not self._held(enabled[at])] or free  # type: ignore[assignment]
        index = self._pick(enabled, free)
        self.ran(enabled[index])
        return index

    def ran(self, option: Option, /) -> None:
        """Note that a place was reached."""
        if not self._waiting or option.lane < 0:
            return
        reached = self._places_of(option)
        del self._places[option.key]
        for held in [*self._waiting]:
            self._waiting[held] = left = [place for place in self._waiting[held] if place not in reached]
            if not left or held in reached:
                del self._waiting[held]

    def _held(self, option: Option) -> bool:
        if option.lane < 0:
            return False
        kind, lane = self._places_of(option)
        return kind in self._waiting or lane in self._waiting

    def _places_of(self, option: Option) -> tuple[Place, Place]:
        key = option.key
        if key not in self._places:
            place = option.place
            self._places[key] = place, lane_place(option.path, place)
        return self._places[key]

    def _pick(self, enabled: Any, free: Any) -> int:
        if self._base == "default" or len(free) == 1:
            return int(free[0])
        if self._base == "walk":
            return int(free[int(self._source.random() * len(free))])
        for at in free:
            lane = enabled[at].lane
            if lane not in self._priorities:
                self._priorities[lane] = self._source.random()
        return int(max(free, key=lambda at: self._priorities[enabled[at].lane]))


class Greybox:
    """Tries to hold each place, and to begin in reverse; then to reverse each pair, and mutations of what was new.

    The holds are executed as ranks: a turn that is held may be overtaken by plain callbacks, which it could not be
    by the others' choice alone.
    """

    name = "greybox"

    def __init__(self, *, seed: int, rung: Rung, share: float = 1.0) -> None:
        self._random = random.Random(f"greybox {seed}")
        self._rung = rung
        self._share = share
        self._tried: dict[Pair, None] = {}
        self._turn = 0
        self._corpus: list[tuple[Pair, ...]] = []

    def look(self, trial: Trial) -> Failure | None:
        """Run until an execution fails or the share is spent."""
        return first_failure(trial, self.steps(trial), share=self._share)

    def steps(self, trial: Trial) -> Iterator[Failure | None]:
        """Run one execution per step; yield the failure of one that failed."""
        while True:
            orders, base = self._next(trial)
            held = base == HOLDS
            inner: Scheduler = HeldPlaces([second for _, second in orders])
            if not held:
                inner = Ordered(orders, base=base, source=random.Random(self._random.getrandbits(64)))
            scheduler = Watched(inner)
            execution = trial.run(scheduler, discipline="ranks" if held else "indices", rung=self._rung)
            new = trial.learn(scheduler)
            if new and orders:
                self._corpus.append(orders)
                del self._corpus[:-MAX_CORPUS]
            if not execution.violations:
                yield None
            elif held:
                yield Failure(scheduler.plan, "ranks", self._rung)
            else:
                yield self._failure(trial, orders, scheduler)

    def _failure(self, trial: Trial, orders: tuple[Pair, ...], scheduler: Watched) -> Failure:
        """Return the failing schedule as holds where they fail too: they read and shrink better."""
        held = Recorded(HeldPlaces([second for _, second in orders]))
        if orders and trial.run(held, rung=self._rung, beyond=True).violations:
            return Failure(held.plan, "ranks", self._rung)
        return Failure(scheduler.plan, "indices", self._rung)

    def _next(self, trial: Trial) -> tuple[tuple[Pair, ...], str]:
        """Return orders to enforce and the base for the rest."""
        coverage = trial.coverage
        if not coverage.places:
            return (), "walk"
        self._turn += 1
        if self._turn > HOLDS_FIRST and self._random.random() < 0.5:
            return self._orders(coverage)
        hold = (trial.gaps.next_start() if self._turn % 2 == 0 else None) or trial.gaps.next()
        if hold is not None:
            return hold.orders, HOLDS if hold.one_by_one else "default"
        return self._orders(coverage)

    def _orders(self, coverage: Coverage) -> tuple[tuple[Pair, ...], str]:
        """Return an order that was not tried, or several, and the base for the rest."""
        draw = self._random.random()
        fresh = [pair for pair in coverage.wanted_kinds if pair not in self._tried]
        if fresh and draw < 0.75:
            pair = self._random.choice(fresh)
            self._tried[pair] = None
            return (pair,), "default" if self._random.random() < 0.6 else "walk"
        base = self._random.choice(("default", "walk", "priorities"))
        if self._corpus and draw < 0.9:
            kept = self._random.choice(self._corpus)[-(MAX_ORDERS - 1) :]
            return (*kept, self._any_order(coverage)), base
        return tuple(self._any_order(coverage) for _ in range(self._random.choice((1, 2, 2, 3)))), base

    def _any_order(self, coverage: Coverage) -> Pair:
        """Return an order not seen yet where there is one, or one seen, either way round."""
        draw = self._random.random()
        pool = coverage.wanted_lanes if draw < 0.25 else (coverage.wanted_kinds if draw < 0.5 else None)
        if pool:
            return self._random.choice(list(pool))
        places = list(coverage.places)
        first, second = self._random.choice(places), self._random.choice(places)
        if first[0] == second[0] or self._random.random() < 0.3:
            return NOTHING, second
        return first, second
