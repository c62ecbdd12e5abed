"""The random-rank scheduler: one draw per op, given when it is parked.

Owns the odds of a hold and of an early arrival; must not know the op.
"""

from __future__ import annotations

import random

from harness.model.choice import ChoicePoint
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline


class Ranks:
    """Holds each op with probability 1/4 and lets it in early with 1/8; other choices are uniform.

    One draw per op searches well, as partial-order sampling does. Source: Yuan et al., CAV 2018, section 3.
    """

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def choose(self, point: ChoicePoint, /) -> int:
        """Return a rank for a parked op, and any index elsewhere."""
        draw = self._source.random()
        if point.kind != "hold":
            return int(draw * len(point.enabled))
        if draw < 0.25:
            return 1
        return 2 if len(point.enabled) > 2 and draw < 0.375 else 0


class Plugin:
    """Makes random-rank schedulers."""

    discipline: Discipline = "ranks"
    rung: Rung | None = None

    @staticmethod
    def make(source: random.Random, history: History | None = None) -> Ranks:
        """Return a scheduler for one execution."""
        return Ranks(source)


PLUGIN = Plugin()
