"""Shrinking: the fewest deviations that still fail, and what is known of schedules with fewer.

Owns the reduction of a plan; must not know which phase found it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.model.choice import ChoicePoint
from harness.model.explanation import Minimal
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.recording import HeldPlaces, Labelled, Planned, Recorded, Seen

# Places at which tasks are held in order to say in a few ranks what took hundreds of indices.
MAX_PLACES = 24
# Executions that may be spent on schedules with fewer deviations than the one that was found.
MAX_BELOW = 300

if TYPE_CHECKING:
    from harness.search.portfolio import Trial

# Kind and name of a choice, how often that name had come up by then, and the value that was chosen.
Deviation = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A plan that fails, its discipline, and how many executions it took to get there."""

    plan: dict[int, int]
    discipline: Discipline
    executions: int


class Named:
    """Follows deviations by name: leaving one out does not change what the others mean. plan: they by index."""

    def __init__(self, wanted: Sequence[Deviation]) -> None:
        self._wanted = {(kind, name, count): value for kind, name, count, value in wanted}
        self._counts: Counter[tuple[str, str]] = Counter()
        self.plan: dict[int, int] = {}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the wanted value, or 0."""
        key = point.kind, "" if point.subject is None else str(point.subject)
        self._counts[key] += 1
        value = self._wanted.get((*key, self._counts[key]), 0)
        if value >= len(point.enabled):
            return 0
        if value:
            self.plan[point.index] = value
        return value


class Shrinker:
    """Executes candidates of one discipline and remembers the last one that failed."""

    def __init__(self, trial: Trial, discipline: Discipline, rung: Rung) -> None:
        self._trial = trial
        self._discipline = discipline
        self._rung = rung
        self.plan: dict[int, int] = {}

    def names(self, plan: Mapping[int, int]) -> list[Deviation] | None:
        """Execute ``plan`` and return its deviations by name, in order, or None when it does not fail again."""
        labels = Labelled(plan)
        if not self._trial.run(labels, discipline=self._discipline, rung=self._rung, beyond=True).violations:
            return None
        self.plan = dict(plan)
        counts: Counter[tuple[str, str]] = Counter()
        found: list[Deviation] = []
        for index, name in enumerate(labels.names):
            counts[name] += 1
            if index in plan:
                found.append((*name, counts[name], plan[index]))
        return found

    def fails(self, deviations: Sequence[Deviation]) -> bool:
        """Execute ``deviations`` and return whether they fail."""
        named = Named(deviations)
        if not self._trial.run(named, discipline=self._discipline, rung=self._rung, beyond=True).violations:
            return False
        self.plan = named.plan
        return True


def shrink(trial: Trial, plan: Mapping[int, int], discipline: Discipline, rung: Rung) -> Shrunk:
    """Return a plan that fails, in which no single deviation can be left out or made plainer.

    Takes at most 2 d log2(k) + 20 executions for d deviations that are left of k.
    """
    before = trial.executions
    if discipline == "indices":
        held = _in_ranks(trial, rung, start=0, stop=MAX_PLACES)
        plan, discipline = (plan, discipline) if held is None else (held, "ranks")
    shrinker = Shrinker(trial, discipline, rung)
    deviations = shrinker.names(plan)
    if deviations is None:  # it does not fail again, which the caller will report
        return Shrunk(dict(plan), discipline, trial.executions - before)
    needed = _needed(shrinker.fails, deviations)
    needed = _without_one(shrinker.fails, needed)
    needed = _plainer(shrinker.fails, needed)
    return Shrunk(shrinker.plan, discipline, trial.executions - before)


def _needed(fails: Callable[[Sequence[Deviation]], bool], deviations: Sequence[Deviation]) -> list[Deviation]:
    """Return deviations that fail, found from the last one to the first.

    The last that is needed ends the shortest beginning that fails, which a bisection finds; then the same with that one
    fixed. As QuickXplain does (Junker, AAAI 2004) for a conflict whose members are to be late in an order.
    """
    needed: list[Deviation] = []
    rest = list(deviations)
    while rest and not fails(needed):
        low, high = 0, len(rest)  # invariant: needed with rest[:high] fails, with rest[:low] it passes
        while high - low > 1:
            middle = (low + high) // 2
            if fails([*rest[:middle], *needed]):
                high = middle
            else:
                low = middle
        needed.insert(0, rest[high - 1])
        rest = rest[: high - 1]
    return needed


def _without_one(fails: Callable[[Sequence[Deviation]], bool], needed: list[Deviation]) -> list[Deviation]:
    """Return what is left when every deviation that can be left out is."""
    for item in needed[:-1] if len(needed) > 1 else ():
        fewer = [other for other in needed if other is not item]
        if fails(fewer):
            needed = fewer
    return needed


def _plainer(fails: Callable[[Sequence[Deviation]], bool], needed: list[Deviation]) -> list[Deviation]:
    """Return the deviations with each value as low as it fails; await shapes are ordered plainest first."""
    for place, (kind, name, count, value) in enumerate(needed):
        for lower in _lower(kind, value):
            candidate = [*needed[:place], (kind, name, count, lower), *needed[place + 1 :]]
            if fails(candidate):
                needed = candidate
                break
    return needed


def _lower(kind: str, value: int) -> Iterator[int]:
    """Yield the values to try in place of ``value``: all lower shapes, and of the rest a few, the lowest first."""
    if kind == "shape":
        yield from range(1, value)
        return
    step = value - 1
    lower = 1
    while lower < value and step > 0:
        yield lower
        step //= 2
        lower = value - step


def check_below(trial: Trial, shrunk: Shrunk, rung: Rung) -> tuple[Shrunk, Minimal]:
    """Execute the schedules with fewer deviations than ``shrunk`` as far as that is affordable.

    What the search executed already counts as tried. The choices that make up a program are no deviations: they stay.
    Returns what fails with fewer, if anything does, and what is known below.
    """
    if shrunk.discipline == "indices" and len(shrunk.plan) > 2:
        held = _in_ranks(trial, rung, start=MAX_PLACES, stop=MAX_BELOW)
        if held is not None:
            shrunk = replace(shrink(trial, held, "ranks", rung), executions=shrunk.executions)
    labels = Labelled(shrunk.plan)
    base: dict[int, int] = {}
    needed = len(shrunk.plan)
    if needed:
        trial.run(labels, discipline=shrunk.discipline, rung=rung, beyond=True)
        base = {index: value for index, value in shrunk.plan.items() if labels.names[index][0] == "program"}
        needed -= len(base)
    if not needed:
        return shrunk, Minimal(0, complete=True, tried=0)
    below = Below(trial, base, rung)
    for fewer in range(needed):
        found = below.look(fewer)
        if found is not None:
            return Shrunk(found, "ranks", shrunk.executions), Minimal(fewer, complete=True, tried=below.tried)
        if below.reason:
            return shrunk, Minimal(fewer, complete=False, tried=below.tried, reason=below.reason)
    return shrunk, Minimal(needed, complete=True, tried=below.tried)


class Below:
    """Executes all schedules of so many deviations, one number after the other.

    base: choices that are the same in all of them. reason: why a number was not completed. tried: executions, and
    those that the search had made before.
    """

    def __init__(self, trial: Trial, base: dict[int, int], rung: Rung) -> None:
        self._trial = trial
        self._rung = rung
        # The next plans to try, or how many there would be.
        self._next: list[dict[int, int]] | int = [base]
        self._base = base
        self.tried = 0
        self.reason = ""

    def look(self, count: int) -> dict[int, int] | None:
        """Execute every plan of ``count`` deviations; return one that fails, or None."""
        plans = self._next
        number = plans if isinstance(plans, int) else len(plans)
        if isinstance(plans, int) or self.tried + number > MAX_BELOW:
            self.reason = f"about {number} schedules have {count}"
            return None
        # Those that the search executed are executed again only where their extensions are few enough to be tried.
        again = number * (number - 1) // 2 <= MAX_BELOW
        self._next = [] if again else number * (number - 1) // 2
        for plan in plans:
            self.tried += 1
            if not again and tuple(sorted(plan.items())) in self._trial.passed:
                continue
            recorder = Planned(plan)
            failed = self._trial.run(recorder, rung=self._rung, beyond=True).violations
            if failed and recorder.fits:
                return plan
            if isinstance(self._next, list):
                self._next += self._extensions(plan, recorder.seen)
        return None

    def _extensions(self, plan: dict[int, int], seen: Sequence[Seen]) -> Iterator[dict[int, int]]:
        """Yield ``plan`` with each deviation that comes after its last one."""
        last = max((index for index in plan if index not in self._base), default=-1)
        for point in seen:
            if point.index > last and point.kind != "program" and point.index not in self._base:
                for value in range(1, point.options):
                    yield {**plan, point.index: value}


def _in_ranks(trial: Trial, rung: Rung, *, start: int, stop: int) -> dict[int, int] | None:
    """Return holds of all tasks, or of single ones, at one or two places that fail, or None.

    They say in a few ranks what takes an index at each of hundreds of choice points. start, stop: which places to try.
    """
    kinds, places = list(trial.coverage.places), [*trial.coverage.places, *trial.coverage.lane_places]
    pairs = [*itertools.combinations(kinds, 2), *itertools.combinations(places, 2)]
    held = dict.fromkeys([*((place,) for place in places), *pairs])
    for candidate in itertools.islice(held, start, stop):
        scheduler = Recorded(HeldPlaces(candidate))
        if trial.run(scheduler, rung=rung, beyond=True).violations:
            return scheduler.plan
    return None
