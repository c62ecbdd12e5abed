"""Selectively uniform random walk: the order of interesting turns is uniform, the rest is a random walk.

Owns who is next to take an interesting turn; must not know what makes a turn interesting.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Any

from harness.model.choice import ChoicePoint, Option, Place, draw_other, offers_options
from harness.model.history import History, parent_path
from harness.model.rung import Rung
from harness.model.schedule import Discipline


class Surw:
    """Draws the lane that takes the next interesting turn, and keeps the other lanes before theirs until then.

    A lane is drawn in proportion to the interesting turns that it has left, those of tasks that it has yet to
    make included. Guarantee: if each lane takes as many of them as counted, and can take them at any time,
    every interleaving of interesting turns is equally likely. A random walk over choices has no such property.
    Source: Zhao et al., "Selectively Uniform Concurrency Testing", ASPLOS 2025, section 3.
    """

    def __init__(
        self, source: random.Random, *, left: Mapping[str, int], interesting: Collection[Place] | None = None
    ) -> None:
        """left: interesting turns of each path. interesting: their places; None for every turn."""
        self._source = source
        self._left = dict(left)
        self._interesting = interesting
        self._intended: str | None = None
        self._places: dict[Any, bool] = {}
        self._alive: dict[str, None] = {}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return an option that keeps no drawn lane waiting; any index of other kinds."""
        if not offers_options(point):
            return draw_other(point, self._source)
        enabled = point.enabled
        for option in enabled:
            if option.lane >= 0 and option.path not in self._alive:
                self._alive[option.path] = None
        if self._intended is None:
            self._intended = self._draw(self._left)
        allowed = self._allowed(enabled)
        if not allowed:
            # The drawn lane waits for one of these: draw again, among them.
            paths = {option.path: self._left.get(option.path, 0) for option in enabled if option.lane >= 0}
            self._intended = self._draw(paths)
            allowed = self._allowed(enabled) or list(range(len(enabled)))
        index = allowed[int(self._source.random() * len(allowed))]
        self.ran(enabled[index])
        return index

    def ran(self, option: Option, /) -> None:
        """Count a turn; after an interesting one somebody else is drawn."""
        counted = self._counts(option)
        self._places.pop(option.key, None)
        if not counted:
            return
        path = option.path
        self._alive.setdefault(path)
        self._left[path] = max(0, self._left.get(path, 0) - 1)
        self._intended = None

    def _allowed(self, enabled: Any) -> list[int]:
        driver = self._driver()
        return [at for at, option in enumerate(enabled) if option.path == driver or not self._counts(option)]

    def _driver(self) -> str | None:
        """Return the drawn lane, or its nearest ancestor that exists."""
        path = self._intended
        while path and path not in self._alive:
            path = parent_path(path)
        return path

    def _counts(self, option: Option) -> bool:
        if option.lane < 0:
            return False
        if self._interesting is None:
            return True
        known = self._places.get(option.key)
        if known is None:
            known = self._places[option.key] = option.place in self._interesting
        return known

    def _draw(self, weights: Mapping[str, int]) -> str | None:
        total = sum(weights.values())
        if not total:
            return None
        at = self._source.random() * total
        for path, weight in weights.items():
            at -= weight
            if at < 0:
                return path
        return None


class Plugin:
    """Makes selectively uniform random walks; learns the interesting turns where none are declared."""

    discipline: Discipline = "indices"
    rung: Rung | None = None
    learns = True

    @staticmethod
    def make(source: random.Random, history: History | None = None) -> Surw:
        """Return a scheduler for one execution; the history says how many turns to expect."""
        if history is None or not history.counts:
            return Surw(source, left={})
        interesting = history.interesting or _learned(source, history)
        left: dict[str, int] = {}
        for (path, place), count in history.counts.items():
            if interesting is None or place in interesting:
                left[path] = left.get(path, 0) + count
        return Surw(source, left=left, interesting=interesting)


def _learned(source: random.Random, history: History) -> Collection[Place] | None:
    """Draw what counts in this execution: every turn, all turns of two kinds of tasks, or two places.

    The paper draws one shared variable per execution. We see no variables; who could share one is a guess, and
    the root task, which mostly starts and awaits others, seldom does.
    """
    draw = source.random()
    places = history.places()
    if draw < 0.2:
        return None
    if draw < 0.4:
        return set(source.sample(places, min(2, len(places))))
    kinds = list(dict.fromkeys(place[0] for path, place in history.counts if path or draw < 0.5))
    chosen = source.sample(kinds, min(2, len(kinds)))
    return {place for place in places if place[0] in chosen}


PLUGIN = Plugin()
