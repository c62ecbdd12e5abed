"""The table of an execution: one column per task, one row per turn, and only the turns that matter.

Owns which rows fit and how wide columns are; must not know why an execution is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.model.explanation import NOISE, Row, Timeline
from harness.report.lines import Line, Span, Style, relative, shorten, wrap
from harness.search.events import MERE
from harness.search.timeline import is_from_outside, short_names

# Narrower than this, a column per task says less than a mark per task with the text behind all of them.
_MIN_COLUMN = 14
_MIN_NAME = 16
# With so many rows that say more, those in which a task only returns say nothing.
_ENOUGH = 12
_CELL_LINES = 2
_GAP = 2
_TURN = 6
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
# What no task did: a run that starts or ends.
_NOBODY = -1


@dataclass(slots=True)
class Entry:
    """One row of the table. column: number, or ``_NOBODY``. texts: with the weight of each, in order.

    where: the source line of the most telling one. deciding: those of ``texts`` that are what decides.
    """

    turn: int
    column: int
    texts: list[tuple[int, str]] = field(default_factory=list)
    where: str = ""
    weight: int = NOISE
    deciding: list[tuple[int, str]] = field(default_factory=list)
    arrival: bool = False

    @property
    def marked(self) -> bool:
        """Whether it holds something that decides."""
        return any(text in self.deciding for text in self.texts)

    def split(self, last: tuple[int, str]) -> tuple[Entry | None, Entry]:
        """Return what comes before ``last``, if anything does, and an entry of ``last`` alone."""
        before = [text for text in self.texts if text != last]
        rest = replace(self, texts=[last], weight=last[0])
        if not before:
            return None, rest
        return replace(self, texts=before, weight=min(weight for weight, _ in before)), rest

    def text(self, room: int = 1000) -> str:
        """Return what happened in one line of ``room`` columns; the least telling part goes first."""
        texts = list(dict.fromkeys(self.texts))
        while len(texts) > 1 and sum(len(text) + 2 for _, text in texts) > room + 2:
            texts.remove(max(reversed(texts), key=lambda item: item[0]))
        return shorten(", ".join(text for _, text in texts), room)


def table(timeline: Timeline, *, width: int, limit: int) -> list[Line]:
    """Return the header and the rows that matter most, in at most ``limit`` lines of ``width`` columns."""
    names, numbers = _columns(timeline)
    entries = _entries(timeline, numbers)
    telling = [entry for entry in entries if entry.weight < MERE]
    entries = telling if len(telling) >= _ENOUGH else entries
    left = sorted(entries, key=lambda entry: (entry.weight, entry.turn))[: max(limit - 1, 0)]
    while left:
        lines = _layout([entry for entry in entries if entry in left], names, width=width)
        if len(lines) <= limit:
            return lines
        left.pop()
    return []


def _columns(timeline: Timeline) -> tuple[list[str], list[int]]:
    """Return the name of each column, and the column of each lane.

    Tasks of one name in runs that follow each other share a column.
    """
    ends: dict[int, int] = {}
    begins: dict[int, int] = {}
    for index, row in enumerate(timeline.rows):
        begins.setdefault(row.lane, index)
        ends[row.lane] = index
    keys: list[tuple[str, int]] = []  # path without the ordinal of the run, and the last row so far
    numbers: list[int] = []
    for lane, item in enumerate(timeline.lanes):
        key = re.sub(r"^([^/#]+)#\d+", r"\1", item.path)
        begin, end = begins.get(lane, 0), ends.get(lane, 0)
        of_run = "/" in key or any(other.path.startswith(f"{item.path}/") for other in timeline.lanes)
        free = [column for column, (other, last) in enumerate(keys) if other == key and last < begin and of_run]
        if not free:
            keys.append((item.path if key in [other for other, _ in keys] else key, end))
            free = [len(keys) - 1]
        keys[free[0]] = keys[free[0]][0], end
        numbers.append(free[0])
    return short_names([key for key, _ in keys]), numbers


def _entries(timeline: Timeline, numbers: Sequence[int]) -> list[Entry]:
    """Return what happened until the violation, one entry per turn and column; deviations also behind it."""
    marked = {index for pair in timeline.deciding for index in pair}
    end = _end(timeline)
    woken = {item.woken: item.cause for item in timeline.wake_ups}
    found: list[Entry] = []
    turn_text: tuple[int, str] | None = None
    last = -1  # the row of the last entry that is an arrival and was followed by nothing else
    for index, row in enumerate(timeline.rows):
        if index > end and index not in timeline.deviations:
            continue
        if row.weight >= NOISE or (row.text.startswith("waits") and row.weight >= MERE):
            last = last if row.kind == "callback" and woken.get(index) == last else -1
            continue
        text = row.weight, _text(timeline, row)
        column = _NOBODY if _is_nobodys(row) else _column(row, numbers)
        entry = found[-1] if found else None
        rest: Entry | None = None
        inside = column == _NOBODY and not is_from_outside(row)
        if inside and entry is not None and turn_text in entry.texts and entry.turn == row.turn:
            assert turn_text is not None  # it is among the texts
            # what a turn came to is said behind what was noted in its course
            before, rest = found.pop().split(turn_text)
            found += [] if before is None else [before]
            entry = found[-1] if found else None
        if entry is None or not _belongs(entry, row, column, after_arrival=last >= 0):
            entry = Entry(row.turn, column)
            found.append(entry)
        entry.arrival = row.kind == "arrival"
        last = index if entry.arrival else -1
        entry.turn = row.turn
        if row.kind == "fact" and turn_text is not None and turn_text in entry.texts:
            entry.texts.insert(entry.texts.index(turn_text), text)
        else:
            entry.texts.append(text)
        if column != _NOBODY and row.kind != "fact":
            turn_text = text if row.kind == "turn" else None
        if row.where and (row.weight < entry.weight or not entry.where):
            entry.where = row.where
        entry.weight = min(entry.weight, row.weight)
        entry.deciding += [text] if index in marked else []
        found += [] if rest is None else [rest]
    return found


def _end(timeline: Timeline) -> int:
    """Return the last row before the violation, with all that was noted in the course of its turn."""
    end = timeline.broken if timeline.broken >= 0 else len(timeline.rows) - 1
    while end + 1 < len(timeline.rows) and timeline.rows[end].turn == timeline.rows[end + 1].turn:
        if timeline.rows[end + 1].kind != "fact":
            break
        end += 1
    return end


def _is_nobodys(row: Row) -> bool:
    """Return whether no task did this: a choice, and a run that starts or ends."""
    return row.kind == "choice" or (row.run >= 0 and row.text.startswith("run "))


def _column(row: Row, numbers: Sequence[int]) -> int:
    return numbers[row.lane] if row.lane >= 0 else _NOBODY


def _belongs(entry: Entry, row: Row, column: int, *, after_arrival: bool) -> bool:
    """Return whether ``row`` goes on with ``entry``: the same turn, or the turn that its arrival let run."""
    if entry.column != column or row.kind in ("arrival", "choice"):
        return False
    return after_arrival if entry.arrival else entry.turn == row.turn


def _text(timeline: Timeline, row: Row) -> str:
    if row.op < 0:
        return row.text
    op = timeline.ops[row.op]
    how = " after a hold" if op.held else " early" if op.early else ""
    return f"{row.text}{how}"


def _layout(entries: Sequence[Entry], names: Sequence[str], *, width: int) -> list[Line]:
    used = sorted({entry.column for entry in entries if entry.column != _NOBODY})
    places = [_place(entry.where, width) for entry in entries]
    column = max(map(len, places), default=0)
    room = width - 2 - _TURN - (column + _GAP if column else 0)
    widths = _widths(used, entries, names, room)
    lines: list[Line] = []
    headings = (_shortened(names[number], size).ljust(size) for number, size in widths.items())
    head = [(" " * _GAP).join(headings)] if widths else []
    head = head or [_legend(used, names)]
    lines.append((Span("  turn  ", "dim"), Span(shorten(head[0], room).rstrip(), "key")))
    for entry, place in zip(entries, places, strict=True):
        cells = _cells(entry, widths, used, names, room)
        style: Style = "bad" if entry.marked else ""
        for number, cell in enumerate(cells):
            turn = "" if number or entry.arrival else str(entry.turn)
            start = "> " if entry.marked and not number else "  "
            shown = place and not number
            line = (Span(f"{start}{turn.rjust(4)}  ", "dim"), Span(cell.ljust(room) if shown else cell, style))
            lines.append((*line, Span(f"  {place}", "dim")) if shown else line)
    return lines


def _cells(entry: Entry, widths: dict[int, int], used: Sequence[int], names: Sequence[str], room: int) -> list[str]:
    if entry.column == _NOBODY:
        return [shorten(f"-- {entry.text()} --", room)]
    if not widths:
        marks = "".join(
            _MARKS[place % len(_MARKS)] if number == entry.column else "." for place, number in enumerate(used)
        )
        name = _shortened(names[entry.column], max(_MIN_NAME, room - len(marks) - len(entry.text()) - 4))
        head = f"{marks}  {name}: "
        return [shorten(f"{head}{entry.text(max(room - len(head), 20))}", room)]
    before = sum(size + _GAP for number, size in widths.items() if number < entry.column)
    last = entry.column == used[-1]
    size = room - before if last else widths[entry.column]
    for length in range(_CELL_LINES * size, size, -1):
        parts = wrap(entry.text(length), size)  # at words, so that it may need more lines than its length says
        if len(parts) <= _CELL_LINES:
            return [" " * before + part for part in parts]
    return [" " * before + shorten(entry.text(size), size)]


def _shortened(name: str, width: int) -> str:
    """Return the end of a name, which tells more than its beginning, in ``width`` columns."""
    return name if len(name) <= width else f"..{name[2 - width :]}"


def _legend(used: Sequence[int], names: Sequence[str]) -> str:
    return f"{'tasks'.ljust(len(used))}  what happens"


def _widths(used: Sequence[int], entries: Sequence[Entry], names: Sequence[str], room: int) -> dict[int, int]:
    """Return the width of each column, or nothing when there are too many."""
    natural = {number: len(names[number]) for number in used}
    for entry in entries:
        if entry.column != _NOBODY:
            natural[entry.column] = max(natural[entry.column], len(entry.text()))
    while sum(natural.values()) + _GAP * (len(natural) - 1) > room:
        widest = max(natural, key=lambda number: natural[number])
        if natural[widest] <= _MIN_COLUMN:
            return {}
        natural[widest] -= 1
    return natural


def _place(where: str, width: int) -> str:
    """Return a source line as long as there is room for it."""
    text = relative(where)
    if len(text) <= width // 4:
        return text
    return text.rpartition("/")[2]
