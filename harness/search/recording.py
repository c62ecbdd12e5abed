"""Schedulers that the searches are made of: one that follows a plan and records, one that replays.

Owns the record of choice points; must not know why a plan was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from harness.model.choice import HOLD, ChoiceKind, ChoicePoint, Place, Scheduler, option_label, point_label
from harness.model.errors import DivergenceError
from harness.model.schedule import Schedule
from harness.search.learning import lane_place


class Seen(NamedTuple):
    """A choice point as a search remembers it: position, kind, how many options, and whether it matters.

    weigh: returns how much later than others an option should be tried, or None when options are alike.
    """

    index: int  # type: ignore[assignment]  # a field, not tuple.index
    kind: ChoiceKind
    options: int
    interesting: bool
    weigh: Callable[[int], int] | None = None


class Planned:
    """Follows a plan, position to value; takes the default elsewhere. Records every choice point."""

    def __init__(self, plan: Mapping[int, int] | None = None) -> None:
        self.plan = plan or {}
        self.seen: list[Seen] = []
        self.fits = True  # every planned value was legal

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the planned value, or 0."""
        weigh = getattr(point.enabled, "weight", None)
        self.seen.append(Seen(point.index, point.kind, len(point.enabled), point.interesting, weigh))
        value = self.plan.get(point.index, 0)
        if value >= len(point.enabled):
            self.fits = False
            return 0
        return value


class Labelled(Planned):
    """Follows a plan and records the names of the choice points, too. names: kind and subject, by index."""

    def __init__(self, plan: Mapping[int, int]) -> None:
        super().__init__(plan)
        self.names: list[tuple[str, str]] = []

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the planned value, or 0."""
        self.names.append((point.kind, "" if point.subject is None else str(point.subject)))
        return super().choose(point)


class Recorded:
    """Wraps a scheduler and keeps the values that it chose, so that they can be planned again."""

    def __init__(self, inner: Scheduler) -> None:
        self._inner = inner
        self.plan: dict[int, int] = {}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return what the inner scheduler chooses."""
        value = self._inner.choose(point)
        if value:
            self.plan[point.index] = value
        return value


class HeldPlaces:
    """Holds every turn and op at some places, as ranks: they wait until the others have nothing left to do."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = dict.fromkeys(places)

    def choose(self, point: ChoicePoint, /) -> int:
        """Return a hold at a held place, and the default elsewhere."""
        subject = point.subject
        if point.kind != "hold" or subject is None or subject.lane < 0:
            return 0
        place = subject.place
        return HOLD if place in self._places or lane_place(subject.path, place) in self._places else 0


class Replay:
    """Replays a schedule and notes the first choice point that does not fit; from there on it answers 0.

    Only choices that were recorded with their names are checked: all that a traced execution recorded.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._decisions = {decision.index: decision for decision in schedule.decisions}
        # Not raised where it is met: the program under test would catch it.
        self.diverged: DivergenceError | None = None

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the recorded value, or 0."""
        decision = self._decisions.pop(point.index, None)
        if decision is None or self.diverged is not None:
            return 0
        legal = decision.kind == point.kind and decision.value < len(point.enabled)
        if legal and decision.option in ("", option_label(point, decision.value)):
            return decision.value
        self.diverged = DivergenceError(
            choice=point.index,
            now_s=point.now_s,
            recorded=f"{decision.kind} {decision.option or decision.label}",
            met=point_label(point),
        )
        return 0

    def check_ended(self, choices: int, *, now_s: float) -> None:
        """Raise DivergenceError when the execution ended before all recorded choices came up."""
        if not self._decisions:
            return
        later = min(self._decisions)
        decision = self._decisions[later]
        raise DivergenceError(
            choice=later,
            now_s=now_s,
            recorded=f"{decision.kind} {decision.option or decision.label}",
            met=f"the execution ended after {choices} choices",
        )
