"""The trio-style batch shuffle: the task turns of an iteration run in a random order.

Owns the shuffle of one batch; must not know the tasks. Trio shuffles the batch of runnable tasks before
each pass, so that no program relies on their order (trio, _core/_run.py, ``unrolled_run``).
"""

from __future__ import annotations

import random

from harness.model.choice import ChoicePoint
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline


class TrioShuffle:
    """Shuffles lanes; arrivals stay in their default order.

    Guarantee: every order of a run of consecutive task turns is equally likely, and none is passed over twice
    by the same turn, so no lane starves.
    """

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def choose(self, point: ChoicePoint, /) -> int:
        """Return any lane with equal probability, and the default elsewhere."""
        if point.kind == "arrival":
            return 0
        return int(self._source.random() * len(point.enabled))


class Plugin:
    """Makes trio-style shuffles; needs the rung ``relaxed``."""

    discipline: Discipline = "indices"
    rung: Rung | None = Rung.RELAXED

    @staticmethod
    def make(source: random.Random, history: History | None = None) -> TrioShuffle:
        """Return a scheduler for one execution."""
        return TrioShuffle(source)


PLUGIN = Plugin()
