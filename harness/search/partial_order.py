"""Partial-order reduction for programs that declare what their tasks share: one execution per trace.

Owns races, backtracking and sleep sets; must not know fingerprints. An event is one turn; two turns are
dependent when one wakes or creates the other's task, or when both touch a declared name and one writes it. A turn
that reads nothing declared in an execution without ``harness.declared()`` is dependent on everything, and so is any
choice that is not a lane: nothing is assumed about unseen state.

Source: source sets of Abdulla, Aronis, Jonsson and Sagonas, "Optimal dynamic partial order reduction", POPL 2014,
section 5, with the sleep sets of Godefroid (LNCS 1032).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Accesses = Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Event:
    """One turn. lane: the task's path. cause: the position of the event that made it ready, or -1.

    accesses: name to whether it was written; None when the turn may touch anything.
    place: the choice point before it, or -1 when there was no choice.
    """

    lane: str
    cause: int
    accesses: Accesses | None
    place: int


def dependent(one: Event, other: Event) -> bool:
    """Return whether the order of two turns may matter."""
    if one.lane == other.lane or one.accesses is None or other.accesses is None:
        return True
    smaller, larger = sorted((one.accesses, other.accesses), key=len)
    return any(name in larger and (write or larger[name]) for name, write in smaller.items())


@dataclass(slots=True)
class Fork:
    """A choice point on the current path.

    options: their names. lanes: whether it is a choice of lanes; other choices are tried in full.
    todo: what must be tried. done: what was tried, with the event that it led to. sleep: what need not be tried.
    """

    options: tuple[str, ...]
    lanes: bool
    value: int = 0
    todo: set[int] = field(default_factory=set)
    done: dict[int, Event | None] = field(default_factory=dict)
    sleep: dict[str, Event] = field(default_factory=dict)

    def asleep(self) -> dict[str, Event]:
        """Return what sleeps while the current option runs: what slept here and what was tried before."""
        tried = {self.options[value]: event for value, event in self.done.items() if value != self.value}
        return {**self.sleep, **{lane: event for lane, event in tried.items() if event is not None}}

    def next_value(self) -> int | None:
        """Return an option that must still be tried, plainest first."""
        left = (value for value in sorted(self.todo) if value not in self.done)
        return next((value for value in left if self.options[value] not in self.sleep), None)


def still_asleep(asleep: Mapping[str, Event], event: Event) -> dict[str, Event]:
    """Return what sleeps after ``event``: what slept before it and commutes with it."""
    return {lane: other for lane, other in asleep.items() if not dependent(other, event)}


def add_races(events: list[Event], forks: list[Fork]) -> None:
    """Mark what must be tried besides, for every race of an event with an earlier one.

    events: the execution in order. Two dependent events race when nothing between them orders them.
    """
    before = happens_before(events)
    for later in range(1, len(events)):
        for earlier in range(later - 1, -1, -1):
            if not _race(events, before, earlier, later):
                continue
            place = events[earlier].place
            if place < 0 or not forks[place].lanes:
                continue
            _backtrack(events, before, forks[place], earlier, later)


def happens_before(events: list[Event]) -> list[set[int]]:
    """Return, for each event, the events that no equivalent schedule can move behind it."""
    before: list[set[int]] = []
    for position, event in enumerate(events):
        ordered: set[int] = set()
        for earlier in range(position - 1, -1, -1):
            if earlier in ordered:
                continue
            if earlier == event.cause or dependent(events[earlier], event):
                ordered.add(earlier)
                ordered |= before[earlier]
        before.append(ordered)
    return before


def _race(events: list[Event], before: list[set[int]], earlier: int, later: int) -> bool:
    first, second = events[earlier], events[later]
    if first.lane == second.lane or earlier == second.cause or not dependent(first, second):
        return False
    between = (position for position in range(earlier + 1, later) if earlier in before[position])
    if any(position in before[later] for position in between):
        return False
    # What the earlier one made possible cannot come before it.
    return second.cause not in (earlier, *(item for item in range(earlier, later) if earlier in before[item]))


def _backtrack(events: list[Event], before: list[set[int]], fork: Fork, earlier: int, later: int) -> None:
    """Add to ``fork`` one lane with which the race can be reversed, unless one is there."""
    free = [position for position in range(earlier + 1, later) if earlier not in before[position]] + [later]
    members = set(free)
    initials = [events[position].lane for position in free if not (before[position] & members) or position == free[0]]
    values = [value for value, option in enumerate(fork.options) if option in initials]
    if any(value in fork.todo for value in values):
        return
    if values:
        fork.todo.add(values[-1] if fork.options[values[-1]] == events[later].lane else values[0])
    else:
        fork.todo.update(range(len(fork.options)))
