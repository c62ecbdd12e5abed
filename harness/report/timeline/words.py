"""The words of a timeline: virtual time, labels for who cannot see it, and paths that a reader recognises.

Owns wording; must not know coordinates.
"""

from __future__ import annotations

import os

from harness.model.explanation import Timeline
from harness.model.outcome import Ending
from harness.report.timeline.columns import Column

EVENT_LOOP = "event loop"
_LIBRARIES = f"{os.sep}site-packages{os.sep}"


def format_time(seconds: float) -> str:
    """Return virtual seconds in the unit that suits them."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3f}".rstrip("0").rstrip(".") + " ms"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def lane_of(timeline: Timeline, column: Column) -> int:
    """Return the lane of a column, -1 for the event loop's own; a fact that stands alone is of no task."""
    row = timeline.rows[column.head]
    return -1 if row.kind == "fact" else row.lane


def lane_path(timeline: Timeline, column: Column) -> str:
    """Return the path of the column's task, or what stands for none."""
    lane = lane_of(timeline, column)
    return timeline.lanes[lane].path if lane >= 0 else EVENT_LOOP


def in_order(timeline: Timeline, column: Column) -> list[int]:
    """Return the rows of a column as they are told: how a turn ends comes last, what arrives comes first."""
    if timeline.rows[column.head].kind == "turn":
        return [*column.facts, column.head]
    return [column.head, *column.facts]


def describe(timeline: Timeline, column: Column) -> str:
    """Return one sentence that says all of a column: turn, time, task, what happened, why to look."""
    row = timeline.rows[column.head]
    said = ", ".join(timeline.rows[index].text for index in in_order(timeline, column))
    words = f"turn {row.turn}, {format_time(row.now_s)}, {lane_path(timeline, column)}: {said}"
    return "; ".join([words, *column.marks])


def short_path(file: str) -> str:
    """Return ``file`` from the current folder, or from the folder of libraries that it is in."""
    if _LIBRARIES in file:
        return file.rpartition(_LIBRARIES)[2]
    return file.removeprefix(os.getcwd() + os.sep)


def split_place(where: str) -> tuple[str, int]:
    """Return file and line of ``file:line``; ("", 0) for no place."""
    file, _, line = where.rpartition(":")
    return (file, int(line)) if file and line.isdigit() else ("", 0)


def short_place(where: str) -> str:
    """Return ``file:line`` as a reader would write it."""
    file, line = split_place(where)
    return f"{short_path(file)}:{line}" if file else ""


_BADGES = (
    ("first of", "1st"),
    ("second of", "2nd"),
    ("let in", "early"),
    ("the promise", "broken"),
    ("a fault", "fault"),
    ("goes before", "first"),
    ("chosen", "chosen"),
)


def badge(mark: str) -> str:
    """Return a mark in one word, with the number of its ordering where there are several."""
    words = next((short for begin, short in _BADGES if mark.startswith(begin)), mark)
    return words + (f" {mark[mark.index('(') :]}" if mark.endswith(")") else "")


_ENDINGS = {
    "deadlock": "ended in a deadlock",
    "turn-limit": "did not end within its turns",
    "stalled": "was stalled",
    "uncontrolled": "reached outside",
}


def ending_clause(ending: Ending) -> str:
    """Return how the program ended, as a clause."""
    return f"the program {_ENDINGS.get(ending.kind, str(ending))}"
