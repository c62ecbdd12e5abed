"""What a search learns from its executions: who took part, and which orders were seen.

Owns the record of steps and the coverage of ordered pairs; must not know why a schedule was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model.choice import START, ChoicePoint, Option, Place, Scheduler, offers_options
from harness.model.history import Step

# Places per execution whose order is recorded: pairs grow with the square.
MAX_PLACES = 150

Pair = tuple[Place, Place]
# What a place waits for that is reached only when nothing else can run.
NOTHING: Place = ()


class Watched:
    """Wraps a scheduler; keeps what it chose, so that it can be planned again, and every step that was taken."""

    def __init__(self, inner: Scheduler) -> None:
        """Under ranks, turns are seen at rung relaxed only, where each is asked about or was held."""
        self._inner = inner
        self._inner_ran = getattr(inner, "ran", None)
        self.plan: dict[int, int] = {}
        self.steps: list[Step] = []
        self.points = 0  # over lanes and arrivals

    def choose(self, point: ChoicePoint, /) -> int:
        """Return what the inner scheduler chooses."""
        value = self._inner.choose(point)
        if value:
            self.plan[point.index] = value
        if offers_options(point):
            self.points += 1
            self._note(point.enabled[value])
        elif point.kind == "hold" and not value and point.subject.key[0] == "lane":
            self._note(point.subject)  # a turn in turn: under ranks, every turn is asked about
        return value

    def ran(self, option: Any, /) -> None:
        """Note what ran without an alternative."""
        self._note(option)
        if self._inner_ran is not None:
            self._inner_ran(option)

    def _note(self, option: Option) -> None:
        if option.lane >= 0:
            self.steps.append(Step(option.path, option.place, option.interesting))


def is_op(place: Place) -> bool:
    """Return whether ``place`` is that of an op, which has a name, and not of a turn, which has instructions."""
    return len(place) == 2 and isinstance(place[1], str)


def lane_place(path: str, place: Place) -> Place:
    """Return ``place`` as that of one task only; the slash tells it from that of all tasks of its kind."""
    return (f"/{path}", *place[1:])


class Coverage:
    """Which places were first reached before which others, in any execution.

    seen: pairs in that order. places: those that were reached when there was more than one task, earliest
    first; lane_places: of single tasks, where several come to one. wanted: pairs that were seen in the
    opposite order only, and that may be possible; of places of all tasks of a kind, or of single tasks.
    """

    def __init__(self) -> None:
        self.seen: dict[Pair, None] = {}
        self.wanted_kinds: dict[Pair, None] = {}
        self.wanted_lanes: dict[Pair, None] = {}
        self.places: dict[Place, None] = {}
        self.lane_places: dict[Place, None] = {}
        self._paths: dict[Place, set[str]] = {}

    def add(self, steps: Sequence[Step]) -> int:
        """Add one execution; return how many pairs are new."""
        before = len(self.seen)
        born: dict[str, int] = {}  # when a task took its first turn; unknown where only arrivals are seen
        kinds: dict[Place, tuple[int, str]] = {}
        lanes: dict[Place, tuple[int, str]] = {}
        for path, place, _ in steps:
            self._paths.setdefault(place, set()).add(path)
        for at, (path, place, _) in enumerate(steps):
            if place[-1] == START:
                born.setdefault(path, at)
            if place not in kinds and len(kinds) < MAX_PLACES:
                kinds[place] = at, path
            if len(self._paths[place]) > 1 and len(lanes) < MAX_PLACES:
                lanes.setdefault(lane_place(path, place), (at, path))
        alone = min((at for path, at in born.items() if path), default=0)
        self.places.update(dict.fromkeys(place for place, (at, _) in kinds.items() if at >= alone))
        self.lane_places.update(dict.fromkeys(lanes))
        self._order(kinds, born, self.wanted_kinds, same=lambda one, other: one[0][0] == other[0][0])
        self._order(lanes, born, self.wanted_lanes, same=lambda one, other: one[1] == other[1])
        return len(self.seen) - before

    def _order(self, found: dict[Place, tuple[int, str]], born: dict[str, int], wanted: Any, *, same: Any) -> None:
        """Note every pair of ``found``, which is in order of time, and want the reverse of a new one."""
        items = list(found.items())
        for index, (later, (_, later_path)) in enumerate(items):
            for earlier, (at, earlier_path) in items[:index]:
                pair = earlier, later
                if pair in self.seen:
                    continue
                self.seen[pair] = None
                wanted.pop(pair, None)
                reverse = later, earlier
                if reverse in self.seen or same((earlier, earlier_path), (later, later_path)):
                    continue
                # What a task did before it made another comes before all that the other does.
                made_it = earlier_path == "" or later_path.startswith(f"{earlier_path}/")
                if not (made_it and at < born.get(later_path, 0)):
                    wanted[reverse] = None
