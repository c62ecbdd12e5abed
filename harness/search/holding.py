"""Where tasks are held, one place after the other: what separates most of what was not separated yet goes first.

Owns what is known of each place, and the choice among them; must not know how a hold is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from harness.model.choice import START, Place
from harness.model.history import Step, parent_path
from harness.search.learning import NOTHING, Pair, is_op, lane_place

# How tasks are held at a place: others made late, or several of them let go on together.
Form = Literal["plain", "late", "together"]
FORMS: tuple[Form, ...] = ("plain", "late", "together")
# What a hold counts that lets several tasks go on together: one that lets them go one by one shows most of it.
TOGETHER = 0.5
# One that makes others late takes more deviations.
LATE = 0.8
# The hold of an op: that an answer is late assumes less than another order of what is ready.
ARRIVAL = 2.0
# Turns and ops that may be held; each costs a little for every task that there was.
MAX_TURNS = 200
MAX_OPS = 100
# Tasks of a kind that are begun in reverse.
MAX_REVERSED = 16
# What a place counts that only other orders than the default lead to: mostly a wait for what somebody holds.
ONLY_IN_OTHERS = 0.25


@dataclass(frozen=True, slots=True)
class Gap:
    """What a task that is held at ``place`` lets others do, as the first execution that came there showed.

    path: of the first task there. before, ends: how many places of its own it had passed by then, and at the end.
    later: places at which other tasks were after it came there. begun: the first turns of tasks that had done
    something before, and passed: the places that they had left. shared: several tasks came to it. weight: what a hold
    there counts, see ``ONLY_IN_OTHERS`` and ``ARRIVAL``.
    """

    place: Place
    path: str
    before: int
    ends: int
    later: int
    begun: tuple[Place, ...]
    passed: int
    shared: bool
    weight: float

    def shows(self, form: Form) -> float:
        """Return how much others do meanwhile."""
        if form == "late":
            return LATE * self.passed * self.weight
        if form == "together":
            return TOGETHER * self.later * self.weight if self.shared else 0
        return self.later * self.weight


class Hold(NamedTuple):
    """Orders to try, most of them holds. one_by_one: of the tasks that wait only one goes on when nothing else can run.

    Otherwise all do.
    """

    orders: tuple[Pair, ...]
    one_by_one: bool


def held(*places: Place) -> Hold:
    """Return the hold of all tasks at some places, until nothing else can run, and then one after the other."""
    return Hold(tuple((NOTHING, place) for place in places), one_by_one=True)


class Gaps:
    """Says where tasks are held next.

    A task that is held lets others come between what it did before and what it does after. A hold in the middle of a
    task separates most pairs of its turns, and the next one does in the middle of what is left: what a hold
    separates anew is the product of the places on its two sides, up to the next that was held. It shows as much as
    others have left to do. Where they had begun before, a second hold makes them late: all that they do comes
    into the gap.
    """

    def __init__(self) -> None:
        self._executions = 0
        self._met: dict[Place, None] = {}
        self._gaps: dict[Place, Gap] = {}
        self._room = {True: MAX_OPS, False: MAX_TURNS}  # how many more there may be, by whether they are ops
        self._starts: dict[Place, dict[str, None]] = {}
        # Where a task was cut, by its path and how.
        self._cuts: dict[tuple[str, Form], list[int]] = {}
        self._held: dict[tuple[Place, Form], None] = {}
        self._reversed: dict[Place, None] = {}  # first turns, where that was possible, and those that were held
        self._begun: dict[Place, None] = {}

    def add(self, steps: Sequence[Step]) -> None:
        """Learn the places that an execution came to for the first time."""
        self._executions += 1
        steps = [Step(path, _one(path, place), interesting) for path, place, interesting in steps]
        if all(step.place in self._met for step in steps):
            return
        born: dict[str, int] = {}
        for at, (path, place, _) in enumerate(steps):
            if place[-1] == START and path:
                born.setdefault(path, at)
                self._met[place] = None
                self._starts.setdefault(place, {})[path] = None
        alone = min(born.values(), default=0)  # until then there was one task, and nothing to be held for
        self._met.update((step.place, None) for step in steps[:alone])
        last = {(path, place): at for at, (path, place, _) in enumerate(steps)}
        # What a task did before others were there counts as one place.
        reached: dict[str, dict[Place, None]] = {path: {} if path in born else {(): None} for path, *_ in steps}
        new: list[tuple[int, str, Place, int, dict[str, int]]] = []
        for at, (path, place, _) in enumerate(steps[alone:], alone):
            if place not in self._met:
                self._met[place] = None
                self._room[is_op(place)] -= 1
                if self._room[is_op(place)] >= 0:
                    passed = {other: len(reached[other]) - 1 for other in born if not _related(other, path)}
                    begun = {other: count for other, count in passed.items() if count > 0}
                    new.append((at, path, place, len(reached[path]), begun))
            reached[path][place] = None
        for at, path, place, before, begun in new:
            self._gaps[place] = Gap(
                place,
                path,
                before,
                len(reached[path]),
                sum(other != path and when > at for (other, _), when in last.items()),
                tuple(lane_place(other, steps[born[other]].place) for other in begun),
                sum(begun.values()),
                sum(other == place for _, other in last) > 1,
                (ONLY_IN_OTHERS if self._executions > 1 else 1) * (ARRIVAL if is_op(place) else 1),
            )

    def next(self) -> Hold | None:
        """Return where tasks are to be held, or None when they were at each place.

        Of equals it is the later place of one task: more was done by then that others can see. Of two tasks, it is
        the one that came to it first.
        """
        best, chosen = -1.0, None
        for gap in self._gaps.values():
            for form in FORMS:
                shows = gap.shows(form)
                if (gap.place, form) in self._held or (form != "plain" and not shows):
                    continue
                worth = self._pairs(gap, form) * shows
                alike = worth == best and chosen is not None and chosen[0].path == gap.path and form == "plain"
                if worth > best or alike:
                    best, chosen = worth, (gap, form)
        if chosen is None:
            return None
        gap, form = chosen
        self._held[gap.place, form] = None
        self._cuts.setdefault((gap.path, form), []).append(gap.before)
        if form == "together":
            return Hold(((NOTHING, gap.place),), one_by_one=False)
        return held(gap.place, *gap.begun) if form == "late" else held(gap.place)

    def next_start(self) -> Hold | None:
        """Return orders of the first turns of one kind of tasks, or None when there is no other kind.

        Where several were made by one task they are reversed. Others, and at last these too, are held.
        """
        for place, paths in self._starts.items():
            if place in self._reversed:
                continue
            self._reversed[place] = None
            if orders := _reversed(place, [*paths][:MAX_REVERSED]):
                return Hold(orders, one_by_one=False)
            self._begun[place] = None
            return held(place)
        for place in self._starts:
            if place not in self._begun:
                self._begun[place] = None
                return held(place)
        return None

    def _pairs(self, gap: Gap, form: Form) -> int:
        """Return how many pairs of the task's turns the hold separates that none before it did."""
        cuts = self._cuts.get((gap.path, form), [])
        below = max((cut for cut in cuts if cut <= gap.before), default=0)
        above = min((cut for cut in cuts if cut > gap.before), default=gap.ends)
        return (gap.before - below) * (above - gap.before)


def _one(path: str, place: Place) -> Place:
    """Return the place; an op is held for itself, since the name of a sleep says little."""
    return lane_place(path, place) if is_op(place) else place


def _related(path: str, other: str) -> bool:
    """Return whether it is one task, or one of them made the other: then it may wait for it."""
    return path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/") or not path or not other


def _reversed(place: Place, paths: Sequence[str]) -> tuple[Pair, ...]:
    """Return orders by which of the tasks that one task made, the younger takes its first turn before the older."""
    siblings: dict[str, list[Place]] = {}
    for path in paths:
        siblings.setdefault(parent_path(path), []).append(lane_place(path, place))
    return tuple((later, earlier) for born in siblings.values() for earlier, later in pairwise(born))
