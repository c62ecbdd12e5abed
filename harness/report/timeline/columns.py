"""The columns of a timeline: which rows of an execution share a box, and which rows are left out of a long one.

Owns the grouping and the marks; must not know sizes or coordinates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model.explanation import Row, Timeline

# Rows that a page shows of one execution; the ones nearest to what is marked. Ten thousand make a browser slow.
MAX_ROWS = 2_000

FIRST, SECOND = "first of the deciding ordering", "second of the deciding ordering"
HELD, EARLY, FAULT, BROKEN = "held", "let in early", "a fault", "the promise is broken"

# Facts that come from outside of the program, at a moment that the schedule chose.
_OUTSIDE = re.compile(r"run \d+ cancelled|run\.timeout ")


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


def columns_of(timeline: Timeline, *, limit: int = MAX_ROWS) -> list[Column]:
    """Return the columns in order of time, at most about ``limit`` rows of them."""
    groups = list(_groups(timeline.rows))
    kept = _nearest(groups, _marked_rows(timeline), limit=limit)
    columns: list[Column] = []
    skipped = 0
    for index, (head, facts) in enumerate(groups):
        if index not in kept:
            skipped += 1 + len(facts)
            continue
        columns.append(Column(head, facts, _marks(timeline, (head, *facts)), skipped))
        skipped = 0
    return columns


def alike(one: Timeline, other: Timeline) -> int:
    """Return how many rows from the beginning are the same in two executions."""
    for index, (first, second) in enumerate(zip(one.rows, other.rows, strict=False)):
        if _shape(one, first) != _shape(other, second):
            return index
    return min(len(one.rows), len(other.rows))


def _shape(timeline: Timeline, row: Row) -> tuple[str, str, str]:
    return timeline.lanes[row.lane].path if row.lane >= 0 else "", row.kind, row.text


def _groups(rows: Sequence[Row]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each head with its facts; a fact that is of no turn, such as a cancellation from outside, stands alone."""
    head = -1
    facts: list[int] = []
    for index, row in enumerate(rows):
        if row.kind == "fact" and head >= 0 and not _OUTSIDE.match(row.text):
            facts.append(index)
            continue
        if head >= 0:
            yield head, tuple(facts)
        head, facts = index, []
    if head >= 0:
        yield head, tuple(facts)


def _marked_rows(timeline: Timeline) -> list[int]:
    """Return the rows around which a long execution is shown, in order."""
    deciding = [index for pair in timeline.deciding for index in pair]
    deviating = [index for op in timeline.ops if op.held or op.early for index in (op.parked, op.arrived)]
    found = sorted({index for index in (*deciding, *deviating, timeline.broken) if index >= 0})
    return found or [len(timeline.rows) - 1]


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


def _marks(timeline: Timeline, rows: tuple[int, ...]) -> tuple[str, ...]:
    """Return what is to be said of a column, each once."""
    marks: list[str] = []
    for number, (first, second) in enumerate(timeline.deciding, start=1):
        which = f" ({number})" if len(timeline.deciding) > 1 else ""
        marks += [f"{FIRST}{which}"] * (first in rows) + [f"{SECOND}{which}"] * (second in rows)
    for index in rows:
        row = timeline.rows[index]
        marks += [HELD] * (row.kind == "held") + [FAULT] * (row.kind == "fact" and bool(_OUTSIDE.match(row.text)))
    for op in timeline.ops:
        if (op.held or op.early) and (op.parked in rows or op.arrived in rows):
            marks.append(HELD if op.held else EARLY)
    if timeline.broken in rows:
        marks.append(BROKEN)
    return tuple(dict.fromkeys(marks))
