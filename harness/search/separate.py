"""Separations: the fewest orderings of two events that hold in all failing samples and never in a passing one.

Owns the choice among orderings; must not execute anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.model.explanation import NOISE
from harness.model.schedule import Schedule
from harness.search.events import MERE, weight_of

# The most orderings that one separation may have.
MAX_ORDERINGS = 3
# Pairs grow with the square: the most telling events of each side are paired.
MAX_EVENTS = 120
# Of orderings that reverse the same passing samples one is enough; of the rest so many are combined.
MAX_COMBINED = 60
# Where the second event comes when it never does.
_NEVER = 1 << 30

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One execution. positions: of each event, in its trace. places: source lines. before: the violation's position.

    alike: its shapes, faults, set orders and program are those of the schedule that is explained.
    """

    fails: bool
    positions: Mapping[str, int]
    places: Mapping[str, str] = field(default_factory=dict)
    before: int = _NEVER
    schedule: Schedule = field(default_factory=Schedule)
    alike: bool = True

    def holds(self, pair: Pair) -> bool:
        """Return whether the first event comes before the second."""
        return self.positions.get(pair[0], _NEVER) < self.positions.get(pair[1], _NEVER)

    def agrees(self, pairs: Collection[Pair]) -> bool:
        """Return whether this fails exactly because all of ``pairs`` hold."""
        return self.fails == all(self.holds(pair) for pair in pairs)


def separations(samples: Sequence[Sample]) -> Iterator[tuple[Pair, ...]]:
    """Yield sets of orderings that all ``samples`` agree with: smallest first, then the most telling.

    samples: the first failing one is the one that is explained: of equally telling orderings the one whose first event
    comes earliest there is the cause rather than what it led to. Of mere turns it is the latest that does.
    """
    failing = [sample for sample in samples if sample.fails]
    passing = [sample for sample in samples if not sample.fails]
    if not failing or not passing:
        return
    model = failing[0]
    # invariant: bit n of a mask stands for passing sample n, which has the ordering reversed.
    masks = {pair: _reversed_in(passing, pair) for pair in _candidates(failing, passing)}
    ranked = sorted(
        (pair for pair in masks if masks[pair]),
        key=lambda pair: (emptiness(pair, passing), *_plainness(pair), _closeness(model, pair[0]), pair),
    )
    everyone = (1 << len(passing)) - 1
    yield from ((pair,) for pair in ranked if masks[pair] == everyone)
    telling = list({masks[pair]: pair for pair in reversed(ranked)}.values())
    telling = sorted(_undominated(telling, masks), key=ranked.index)[:MAX_COMBINED]
    for count in range(2, MAX_ORDERINGS + 1):
        for chosen in itertools.combinations(telling, count):
            covered = 0
            for pair in chosen:
                covered |= masks[pair]
            if covered == everyone:
                yield chosen


def emptiness(pair: Pair, passing: Sequence[Sample]) -> int:
    """Return how little an ordering says: 0 for one that some passing sample has the other way round.

    1 for two ends of the same thing: a save that was cancelled does not commit. 2 for one that says no more than that
    its first event does not come in passing samples: what comes with the violation only is before nothing.
    """
    first, second = pair
    if any(second in sample.positions and first in sample.positions for sample in passing if not sample.holds(pair)):
        return 0
    ends = all(second in sample.positions for sample in passing if not sample.holds(pair))
    return 1 if ends and _subject(first) == _subject(second) else 2


def _subject(name: str) -> str:
    kind, _, rest = name.partition(" ")
    return rest if "." in kind else name


def _plainness(pair: Pair) -> tuple[int, int]:
    """Return how many of the two are mere turns, and how little they tell."""
    weights = [weight_of(name) for name in pair]
    return sum(weight >= MERE for weight in weights), sum(weights)


def _closeness(model: Sample, name: str) -> int:
    """Return the place of a first event among equally telling ones: the earliest event, or the latest mere turn."""
    position = model.positions[name]
    return -position if weight_of(name) >= MERE else position


def _candidates(failing: Sequence[Sample], passing: Sequence[Sample]) -> list[Pair]:
    """Return the orderings that hold in all failing samples, of the most telling events."""
    model = failing[0]
    firsts = _telling(model, [name for name, position in model.positions.items() if position < model.before])
    known = dict.fromkeys([*model.positions, *(name for sample in passing for name in sample.positions)])
    seconds = _telling(model, list(known))
    pairs = [(one, other) for one in firsts for other in seconds if model.holds((one, other))]
    return [pair for pair in pairs if all(sample.holds(pair) for sample in failing)]


def _telling(model: Sample, names: Sequence[str]) -> list[str]:
    chosen = [name for name in names if weight_of(name) < NOISE]
    return sorted(chosen, key=lambda name: (weight_of(name), model.positions.get(name, _NEVER), name))[:MAX_EVENTS]


def _reversed_in(passing: Sequence[Sample], pair: Pair) -> int:
    return sum(1 << index for index, sample in enumerate(passing) if not sample.holds(pair))


def _undominated(pairs: Sequence[Pair], masks: Mapping[Pair, int]) -> list[Pair]:
    """Leave out what another ordering does as well and more."""
    return [
        pair
        for pair in pairs
        if not any(masks[pair] | masks[other] == masks[other] and masks[pair] != masks[other] for other in pairs)
    ]
