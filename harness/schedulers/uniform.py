"""The uniform scheduler: every option of every choice point is equally likely.

Owns one draw per choice; must not know what is chosen.
"""

from __future__ import annotations

import random

from harness.model.choice import ChoicePoint
from harness.model.history import History
from harness.model.rung import Rung
from harness.model.schedule import Discipline


class Uniform:
    """A random walk over choice points. Guarantee: each schedule of k binary choices has probability 2^-k.

    It is uniform over choices, not over interleavings: of two tasks of five turns, the order that runs one task to
    its end first has probability 2^-5, and one that alternates 2^-9 (an even share would be 1 of 252).
    """

    def __init__(self, source: random.Random) -> None:
        self._random = source.random

    def choose(self, point: ChoicePoint, /) -> int:
        """Return any index with equal probability."""
        return self.draw(len(point.enabled))

    def draw(self, options: int, /) -> int:
        """Return any of so many indices with equal probability."""
        return int(self._random() * options)


class Plugin:
    """Makes uniform schedulers over single arrivals and lanes."""

    discipline: Discipline = "indices"
    rung: Rung | None = None

    @staticmethod
    def make(source: random.Random, history: History | None = None) -> Uniform:
        """Return a scheduler for one execution."""
        return Uniform(source)


PLUGIN = Plugin()
