"""The columns of a timeline: which rows of an execution share a box, and which rows are left out of a long one.

Owns the grouping and the marks; must not know sizes or coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model.explanation import Pending, Row, Timeline
from harness.search.timeline import is_from_outside

# Rows that a page shows of one execution; the ones nearest to what is marked. Ten thousand make a browser slow.
MAX_ROWS = 2_000

FIRST, SECOND = "first of the deciding ordering", "second of the deciding ordering"
HELD, EARLY, FAULT, BROKEN = "held", "let in early", "a fault", "the promise is broken"
FORWARD, CHOSEN = "goes before others", "chosen by the schedule"

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Column:
    """A turn, a callback, an arrival or a held turn, with the facts that were noted in its course.

    head, facts: indices into the rows of the timeline. marks: why a reader should look here, in words.
    skipped: how many rows are left out right before it.
    """

    head: int
    facts: tuple[int, ...]
    marks: tuple[str, ...] = ()
    skipped: int = 0


# What is said of the row of a deviation, by the kind of its choice.
_DEVIATES = {
    "fault": FAULT,
    "hold": HELD,
    "lane": FORWARD,
    "arrival": FORWARD,
    "shape": CHOSEN,
    "order": CHOSEN,
    "members": CHOSEN,
    "program": CHOSEN,
}


def columns_of(timeline: Timeline, *, limit: int = MAX_ROWS) -> list[Column]:
    """Return the columns in order of time, at most about ``limit`` rows of them."""
    groups = list(_groups(timeline.rows))
    marks = _marks_of(timeline)
    kept = _nearest(groups, sorted(marks) or [len(timeline.rows) - 1], limit=limit)
    columns: list[Column] = []
    skipped = 0
    for index, (head, facts) in enumerate(groups):
        if index not in kept:
            skipped += 1 + len(facts)
            continue
        said = dict.fromkeys(mark for row in (head, *facts) for mark in marks.get(row, ()))
        columns.append(Column(head, facts, tuple(said), skipped))
        skipped = 0
    return columns


def alike(one: Timeline, other: Timeline) -> int:
    """Return how many rows from the beginning are the same in two executions."""
    for index, (first, second) in enumerate(zip(one.rows, other.rows, strict=False)):
        if _shape(one, first) != _shape(other, second):
            return index
    return min(len(one.rows), len(other.rows))


def parked_in(timeline: Timeline, op: Pending) -> int:
    """Return the row in which ``op`` was parked; for a turn that is held, the row that says so. -1 for none."""
    if op.kind != "turn":
        return op.parked
    end = op.arrived if op.arrived >= 0 else len(timeline.rows)
    held = [
        index for index in range(end) if timeline.rows[index].kind == "held" and timeline.rows[index].lane == op.lane
    ]
    return held[-1] if held else NOWHERE


def _shape(timeline: Timeline, row: Row) -> tuple[str, str, str]:
    return timeline.lanes[row.lane].path if row.lane >= 0 else "", row.kind, row.text


def _groups(rows: Sequence[Row]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each head with its facts, and the choices made in its course.

    What is of no turn, such as a cancellation from outside, stands alone.
    """
    head = -1
    facts: list[int] = []
    for index, row in enumerate(rows):
        noted = row.kind == "fact" and not is_from_outside(row)
        if head >= 0 and (noted or (row.kind == "choice" and row.lane >= 0)):
            facts.append(index)
            continue
        if head >= 0:
            yield head, tuple(facts)
        head, facts = index, []
    if head >= 0:
        yield head, tuple(facts)


def _nearest(groups: Sequence[tuple[int, tuple[int, ...]]], marked: Sequence[int], *, limit: int) -> set[int]:
    """Return the groups to keep: all, or those nearest to a marked row until ``limit`` rows are reached."""
    if sum(1 + len(facts) for _, facts in groups) <= limit:
        return set(range(len(groups)))
    by_distance = sorted(
        range(len(groups)), key=lambda index: (min(abs(groups[index][0] - row) for row in marked), index)
    )
    kept: set[int] = set()
    rows = 0
    for index in by_distance:
        rows += 1 + len(groups[index][1])
        if rows > limit:
            break
        kept.add(index)
    return kept


def _marks_of(timeline: Timeline) -> dict[int, list[str]]:
    """Return what is to be said of a row, for each row of which something is."""
    marks: dict[int, list[str]] = {}
    for number, (first, second) in enumerate(timeline.deciding, start=1):
        which = f" ({number})" if len(timeline.deciding) > 1 else ""
        marks.setdefault(first, []).append(FIRST + which)
        marks.setdefault(second, []).append(SECOND + which)
    for index, row in enumerate(timeline.rows):
        if row.kind == "held":
            marks.setdefault(index, []).append(HELD)
        elif is_from_outside(row):
            marks.setdefault(index, []).append(FAULT)
    for decision, index in zip(timeline.schedule.decisions, timeline.deviations, strict=False):
        marks.setdefault(index, []).append(EARLY if decision.option.endswith(": early") else _DEVIATES[decision.kind])
    for op in timeline.ops:
        if op.held or op.early:
            for index in (parked_in(timeline, op), op.arrived):
                marks.setdefault(index, []).append(HELD if op.held else EARLY)
    marks.setdefault(timeline.broken, []).append(BROKEN)
    marks.pop(NOWHERE, None)
    return marks
