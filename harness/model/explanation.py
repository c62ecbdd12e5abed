"""Explanations: why one schedule fails, as values that reports, pages and other tools share.

Owns the shape of the answer; must not know how it is found or how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.model.outcome import Ending, Violation
from harness.model.rung import Rung
from harness.model.schedule import Schedule

RowKind = Literal["turn", "callback", "arrival", "held", "fact", "choice"]

# The weight of a row that nobody needs to see.
NOISE = 9


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happens in an execution, with a name that means the same in others. where: its source line."""

    name: str
    where: str


@dataclass(frozen=True, slots=True)
class Ordering:
    """``first`` comes before ``second``. An event that does not happen counts as later than one that does."""

    first: Moment
    second: Moment

    def __str__(self) -> str:
        return f"{self.first.name} before {self.second.name}"


@dataclass(frozen=True, slots=True)
class Deciding:
    """An execution fails when all ``orderings`` hold, and passes when one of them is reversed.

    orderings: one to three; the fewest that separate. failing, passing: how many executions, all different, support
    each half. aimed: how many executions were made on purpose, to keep to the orderings or to reverse one of them,
    after the orderings had been chosen. alike: whether this is said of executions only that have the shapes, faults and
    set orders of the failing schedule, and not of all.
    """

    orderings: tuple[Ordering, ...]
    failing: int
    passing: int
    aimed: int = 0
    alike: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The events by name, two for each ordering: of each two the first comes before the second."""
        return tuple(name for item in self.orderings for name in (item.first.name, item.second.name))

    def __str__(self) -> str:
        return " and ".join(str(ordering) for ordering in self.orderings)


@dataclass(frozen=True, slots=True)
class Minimal:
    """What is known of schedules with fewer deviations than a counterexample.

    below: all schedules of fewer deviations than this pass; 0 when nothing was checked. complete: whether that is
    all that there is below the counterexample. tried: executions that were spent on it. reason: why it is not complete.
    """

    below: int
    complete: bool
    tried: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a stack. where: ``file:line``."""

    where: str
    function: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One task. path: as in schedules. name: the shortest end of the path that no other lane of the execution has."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a trace: a turn that ran, a plain callback, an arrival, a held turn, or a fact.

    Of a choice that is not the default and has no entry of its own, such as an await shape: a row of kind ``choice``.

    turn: its number. lane: index into ``Timeline.lanes``: of the task that ran, that waited for what arrived, or in
    whose turn the fact was noted; -1 for none. name: what it is in every execution, in words, "" for what has no
    such name. text: what happened, to be read beside the lane's name. op: index into ``Timeline.ops``, or -1.
    run: ordinal of the run that a fact is of, or -1. weight: 0 for what a reader must see, up to 9 (``NOISE``).
    stack: where the task was when the turn ended, outermost frame first; only the program's own frames.
    """

    turn: int
    now_s: float
    lane: int
    kind: RowKind
    name: str
    text: str
    where: str
    weight: int
    op: int = -1
    run: int = -1
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """An op, from the moment at which it was parked to its arrival.

    name: as in schedules. kind: ``point``, ``job``, ``done``, ``arrival``, ``timer`` or ``turn``. lane: index of the
    task that waits for it, or -1. parked, arrived: indices into ``Timeline.rows``: of the row in which it was parked
    (-1: before the first), and of its arrival (-1: it did not arrive). held, early: how the schedule deviates.
    """

    name: str
    kind: str
    lane: int
    where: str
    parked: int
    arrived: int
    held: bool = False
    early: bool = False


@dataclass(frozen=True, slots=True)
class WakeUp:
    """What happened in row ``cause`` made the turn or callback of row ``woken`` ready; indices into the rows."""

    cause: int
    woken: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """One execution, row by row.

    text: its schedule in words. fails: whether it breaks the promise in question. broken: index of the row at which
    that showed, or -1. deciding: of each deciding ordering, the rows of its two events, -1 for one that did not happen.
    deviations: of each decision of the schedule, the row at which it shows; empty where no trace was kept.
    invariant: rows are in the order in which things happened.
    """

    schedule: Schedule
    text: str
    rung: Rung
    ending: Ending
    fails: bool
    lanes: tuple[Lane, ...] = ()
    rows: tuple[Row, ...] = ()
    ops: tuple[Pending, ...] = ()
    wake_ups: tuple[WakeUp, ...] = ()
    broken: int = -1
    deciding: tuple[tuple[int, int], ...] = ()
    deviations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a schedule fails.

    title: the scenario and the storage, or the test. promise: what should hold, one sentence. violation: what happened
    instead. sleeps: those that must stand for work of unknown duration. without: oracles that were switched off, with
    reasons. executions: how many it took to find and to explain it. found_after, found_by: until the first failing
    one, and the phase that met it; 0 and "" for a schedule that was given. difference: the first turn that differed
    when it was executed twice. deciding: None when nothing separates failing from passing executions, or when nobody
    looked (``unexplained`` says why). passing: the nearest passing execution, if any was met. changes: how the failing
    schedule gets there, one clause each: "-" or "+", a space, and the clause.
    """

    title: str
    setup: Mapping[str, str]
    violation: Violation
    promise: str
    failing: Timeline
    executions: int = 0
    found_after: int = 0
    found_by: str = ""
    difference: str = ""
    sleeps: tuple[str, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    minimal: Minimal | None = None
    deciding: Deciding | None = None
    unexplained: str = ""
    passing: Timeline | None = None
    changes: tuple[str, ...] = ()

    @property
    def schedule(self) -> Schedule:
        """The failing schedule."""
        return self.failing.schedule

    @property
    def deviations(self) -> int:
        """How many choices of the failing schedule differ from the default."""
        return self.failing.schedule.deviations

    @property
    def rung(self) -> Rung:
        """The least assumption that the failing schedule needs."""
        return self.failing.rung
