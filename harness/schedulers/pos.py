"""Partial-order sampling: every pending turn draws a priority once, and the highest runs.

Owns the priorities of what is pending; must not know what a turn does.
"""

from __future__ import annotations

import random

from harness.model.choice import ChoicePoint, Key, Option, draw_other, offers_options
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline


class Pos:
    """Runs what drew the highest priority; what races with it then draws anew.

    Interesting ops and lanes race with one another. Of other turns nothing is known, so they keep what they
    drew (the paper's basic form). Guarantee: an order of e turns comes up with probability at least 1/e!, since it
    runs when what its turns drew descends along it; n lanes of one turn each run in any of n! orders alike.
    Source: Yuan et al., CAV 2018, sections 3 and 4.
    """

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._priorities: dict[Key, float] = {}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the pending option of the highest priority; any index of other kinds."""
        if not offers_options(point):
            return draw_other(point, self._source)
        keys = [option.key for option in point.enabled]
        for key in keys:
            if key not in self._priorities:
                self._priorities[key] = self._source.random()
        index = max(range(len(keys)), key=lambda at: self._priorities[keys[at]])
        chosen: Option = point.enabled[index]
        self.ran(chosen)
        if chosen.interesting:
            for option in point.enabled:
                if option.interesting:
                    self._priorities.pop(option.key, None)
        return index

    def ran(self, option: Option, /) -> None:
        """Forget what the turn drew: the lane's next turn draws anew."""
        self._priorities.pop(option.key, None)


class Plugin:
    """Makes partial-order samplers."""

    discipline: Discipline = "indices"
    rung: Rung | None = None

    @staticmethod
    def make(source: random.Random, history: History | None = None) -> Pos:
        """Return a scheduler for one execution."""
        return Pos(source)


PLUGIN = Plugin()
