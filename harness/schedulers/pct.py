"""Probabilistic concurrency testing: random priorities per lane, and a few points at which they change.

Owns the priorities of one execution; must not know the lanes.
"""

from __future__ import annotations

import random

from harness.model.choice import ChoicePoint, draw_other, offers_options
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline

# Choice points assumed before anything is known of the program.
UNKNOWN_POINTS = 64
# Depths of the automatic scheduler: most bugs have depth 1 to 3 (Burckhardt et al., table 3).
DEPTHS = (1, 2, 2, 3, 3, 4, 5)


class Pct:
    """Runs the enabled lane of the highest priority; at ``depth`` - 1 random points it becomes the lowest.

    An op counts as a turn of the task that waits for it; "no more" is a lane of its own.
    Guarantee: for n lanes and k choice points, a bug of depth d is found with probability at least
    1 / (n k^(d-1)), if k is not underestimated and no lane is passed over so often that the loop lets it run.
    Source: Burckhardt et al., ASPLOS 2010, sections 2.3 and 3.
    """

    def __init__(self, source: random.Random, *, depth: int, points: int) -> None:
        self._source = source
        self._points = 0
        # invariant: initial priorities lie in [1, 2), lowered ones below 1, each lower than the one before.
        self._priorities: dict[int, float] = {}
        changes = source.sample(range(1, max(points, depth) + 1), depth - 1)
        self._lowered = {at: 1 / (2 + order) for order, at in enumerate(changes)}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the lane of the highest priority, or the first of its ops; any index of other kinds."""
        if not offers_options(point):
            return draw_other(point, self._source)
        lanes = [option.lane for option in point.enabled]
        for lane in lanes:
            if lane not in self._priorities:
                self._priorities[lane] = 1 + self._source.random()
        self._points += 1
        best = max(lanes, key=self._priorities.__getitem__)
        lowered = self._lowered.get(self._points)
        if lowered is not None:
            self._priorities[best] = lowered
            best = max(lanes, key=self._priorities.__getitem__)
        return lanes.index(best)


class Plugin:
    """Makes PCT schedulers. depth: None varies it from execution to execution."""

    discipline: Discipline = "indices"
    rung: Rung | None = None
    learns = True

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth

    def with_parameter(self, value: int) -> Plugin:
        """Return a plugin of depth ``value``, as in ``pct-3``."""
        return Plugin(max(1, value))

    def make(self, source: random.Random, history: History | None = None) -> Pct:
        """Return a scheduler for one execution; the history says how many choice points to expect."""
        depth = self._depth or source.choice(DEPTHS)
        points = history.points if history is not None and history.points else UNKNOWN_POINTS
        return Pct(source, depth=depth, points=points)


PLUGIN = Plugin()
