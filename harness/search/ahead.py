"""Expansions ahead of their turn: other processes expand what will be merged soon.

Owns which prefixes are on their way and what their workers are told; must not know what is merged, in which order or
why. What it yields for a prefix is what an expansion here would have come to, or goes on for longer: to a state that
its worker had not been told of.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from harness.runtime.clock import real_time
from harness.search.expansion import Expander, expanding
from harness.search.pool import Bench, Pool, Recipe
from harness.search.states import Pending
from harness.search.visits import Prefix, Visit, Way, prefix_of

MAX_PREFIXES = 256
# This process works alone for as long: a worker takes longer to open a target.
ALONE_S = 0.3
_DIGEST = 16
# A unit carries at most so many states.
MAX_KNOWN = 1 << 14

Entry = tuple[int, int, Pending]


@dataclass(frozen=True, slots=True)
class Expanded:
    """What prefixes came to, in their order, and how long one took in real seconds."""

    visits: tuple[Visit, ...]
    mean_s: float


@dataclass(frozen=True, slots=True)
class Prefixes:
    """A unit: prefixes to expand. known: states that were met, joined; a hint, since whoever merges looks again.

    forget: be guided by no state that was met before.
    """

    way: Way
    prefixes: tuple[Prefix, ...]
    known: bytes
    moments: Mapping[str, int]
    forget: bool = False

    def run(self, bench: Bench, /) -> Expanded:
        """Expand each prefix, as far as a state that is known here."""
        expander, states = bench.kept(self.way, lambda: _expanding(bench, self.way))
        states.update(self.known[at : at + _DIGEST] for at in range(0, len(self.known), _DIGEST))
        began = real_time()
        visits: list[Visit] = []
        for prefix in self.prefixes:
            visit = expander.expand(prefix, known=() if self.forget else states, moments=self.moments)
            states.update(met.state for met in visit.met if met.state)
            visits.append(visit)
        return Expanded(tuple(visits), (real_time() - began) / len(visits))


@contextmanager
def _expanding(bench: Bench, way: Way) -> Iterator[tuple[Expander, set[bytes]]]:
    with expanding(bench.runner, way) as expander:
        yield expander, set()


class Ahead:
    """What is expanded elsewhere, for one exhaustive search."""

    def __init__(self, pool: Pool, recipe: Recipe, way: Way) -> None:
        self._pool, self._recipe, self._way = pool, recipe, way
        self._todo: list[Entry] = []
        self._away: dict[int, list[Pending]] = {}
        self._on_the_way: set[Pending] = set()
        self._visits: dict[Pending, Visit] = {}
        self._taken: set[Pending] = set()  # may be among what is to do, and is not to be sent any more
        self._states: list[bytes] = []  # in the order in which they were met
        self._told: deque[int] = deque(maxlen=2 * pool.jobs + 2)  # how many there were at the last units
        self._mean_s = pool.unit_s
        self._began: float | None = None

    def offer(self, entry: Entry) -> None:
        """Take an option that will be merged some time."""
        heapq.heappush(self._todo, entry)

    def note(self, state: bytes) -> None:
        """Note a state that is known from now on."""
        self._states.append(state)

    def works_alone(self, item: Pending) -> bool:
        """Return whether this process should expand ``item`` itself."""
        if self._began is None:
            self._began = real_time()
        if self._pool.kin and item not in self._visits and item not in self._on_the_way:
            alone = real_time() - self._began < ALONE_S
            if alone:
                self._taken.add(item)
            return alone
        return False

    def visit(self, item: Pending, moments: Mapping[str, int]) -> Visit:
        """Return what ``item`` came to; keep the workers busy meanwhile."""
        if item not in self._visits and item not in self._on_the_way:
            self._taken.add(item)
            self._send([item], moments)
        while item not in self._visits:
            self._fill(moments)
            number, found = self._pool.next()
            items = self._away.pop(number)
            self._mean_s = max(1e-5, (self._mean_s + found.mean_s) / 2)
            self._on_the_way.difference_update(items)
            self._visits.update(zip(items, found.visits, strict=True))
        self._fill(moments)
        return self._visits.pop(item)

    def visit_again(self, item: Pending, moments: Mapping[str, int]) -> Visit:
        """Return what ``item`` comes to when nothing is known before it."""
        self._send([item], moments, forget=True)
        return self.visit(item, moments)

    def _fill(self, moments: Mapping[str, int]) -> None:
        while self._todo and self._pool.room > 0:
            fair = -(-len(self._todo) // (2 * self._pool.jobs))
            size = max(1, min(MAX_PREFIXES, int(self._pool.unit_s / self._mean_s), fair))
            items: list[Pending] = []
            while self._todo and len(items) < size:
                item = heapq.heappop(self._todo)[2]
                if item in self._taken:
                    self._taken.remove(item)
                else:
                    items.append(item)
            if items:
                self._send(items, moments)

    def _send(self, items: list[Pending], moments: Mapping[str, int], *, forget: bool = False) -> None:
        start = self._told[0] if len(self._told) == self._told.maxlen else 0
        known = b"".join(self._states[max(start, len(self._states) - MAX_KNOWN) :])
        self._told.append(len(self._states))
        prefixes = tuple(prefix_of(item) for item in items)
        unit = Prefixes(self._way, prefixes, known, dict(moments), forget)
        self._away[self._pool.submit(self._recipe, unit)] = items
        self._on_the_way.update(items)
