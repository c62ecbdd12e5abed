"""The drawing of one execution: a track per task, time to the right, boxes, op bars and wake-up arrows.

Owns where everything stands; must not know how it becomes a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.model.explanation import Pending, Row, Timeline
from harness.report.timeline.columns import BROKEN, Column, parked_in
from harness.report.timeline.shapes import Arrow, Bar, Box, Drawing, Gap, Tick, Track
from harness.report.timeline.words import EVENT_LOOP, describe, format_time, in_order, lane_of

CHARACTER, LINE = 6.4, 15.0  # of the text in a box
MAX_CHARACTERS, MAX_LINES = 26, 4
NAME_CHARACTERS, MAX_NAME = 18, 72  # of the name of a lane: in one line, and in all
NARROW, SYMBOL, BOX_PADDING = 24.0, 32.0, 9.0  # of a box: without text, beside its text, above and below
BETWEEN, AXIS, TRACK_PADDING = 12.0, 40.0, 9.0
BAR, BAR_SPACE = 16.0, 19.0
PAUSE_S, PAUSE = 1e-3, 64.0  # a pause of at least so many virtual seconds gets so many pixels
SKIP = 110.0  # where rows are left out
TICK = 76.0  # between two readings of the clock
FIRST_LINE = (LINE + BOX_PADDING) / 2  # from the top of a box to the middle of its first line
TRUNK = 6.0  # from the right of a box to where its wake-ups leave it

_SYMBOLS = {"callback": "○", "held": "‖", "arrival": "▼", "fact": "!", "choice": "◆"}
_ENDINGS = (("raises", "✕"), ("is cancelled", "⊘"), ("returns", "✓"))


def draw(timeline: Timeline, columns: Sequence[Column], *, prefix: str, same: int) -> Drawing:
    """Lay out ``columns``. prefix: of the anchors. same: how many rows from the start are those of the other one."""
    lanes = _lanes(timeline, columns)
    places, ticks, gaps, end = _places(timeline, columns)
    boxes = [
        _box(timeline, column, x=x, track=lanes.index(lane_of(timeline, column)), prefix=prefix, same=same)
        for column, x in zip(columns, places, strict=True)
    ]
    spans = _spans(timeline, columns, boxes, lanes, end=end)
    tracks = _tracks(timeline, lanes, boxes, spans)
    boxes = [replace(box, y=tracks[box.track].y + TRACK_PADDING) for box in boxes]
    bottoms: dict[int, float] = {}
    for box in boxes:
        bottoms[box.track] = max(bottoms.get(box.track, 0.0), box.y + box.height)
    by_row = {index: box for column, box in zip(columns, boxes, strict=True) for index in (column.head, *column.facts)}
    differs = next((box.x - BETWEEN / 2 for box in boxes if not box.alike), -1.0)
    return Drawing(
        axis=AXIS,
        width=end,
        height=tracks[-1].y + tracks[-1].height if tracks else AXIS,
        tracks=tuple(tracks),
        boxes=tuple(boxes),
        bars=tuple(_bar(span, below=bottoms[span.track]) for span in spans),
        arrows=tuple(
            _arrow(by_row[wake.cause], by_row[wake.woken])
            for wake in timeline.wake_ups
            if wake.cause in by_row and wake.woken in by_row
        ),
        ticks=tuple(ticks),
        gaps=tuple(gaps),
        differs=differs if same else -1.0,
        broken=next((box.x + box.width + BETWEEN / 2 for box in boxes if BROKEN in box.marks), -1.0),
    )


def _lanes(timeline: Timeline, columns: Sequence[Column]) -> list[int]:
    """Return the lanes that have a column, as the timeline orders them; the event loop's own comes last."""
    used = {lane_of(timeline, column) for column in columns}
    return [lane for lane in (*range(len(timeline.lanes)), -1) if lane in used]


def _places(timeline: Timeline, columns: Sequence[Column]) -> tuple[list[float], list[Tick], list[Gap], float]:
    """Return the x of each column, what is written over them, and where the drawing ends."""
    x, clock_free, before_s = BETWEEN, 0.0, None
    places: list[float] = []
    ticks: list[Tick] = []
    gaps: list[Gap] = []
    for column in columns:
        row = timeline.rows[column.head]
        if column.skipped:
            gaps.append(Gap(x, SKIP, f"{column.skipped} rows left out"))
            x += SKIP + BETWEEN
        elif before_s is not None and row.now_s - before_s >= PAUSE_S:
            gaps.append(Gap(x, PAUSE, f"+{format_time(row.now_s - before_s)}"))
            x += PAUSE + BETWEEN
        before_s = row.now_s
        places.append(x)
        time = format_time(row.now_s) if x >= clock_free else ""
        if time:
            clock_free = x + TICK
        ticks.append(Tick(x, row.turn, time))
        x += _width(_lines(timeline, column)) + BETWEEN
    return places, ticks, gaps, x


def _lines(timeline: Timeline, column: Column) -> tuple[str, ...]:
    """Return what a box says: nothing for a turn that only goes from one await to the next."""
    row = timeline.rows[column.head]
    plain = row.kind == "callback" or row.text == "returns" or row.text.startswith("waits")  # its bar says for what
    told = [timeline.rows[index] for index in in_order(timeline, column) if index != column.head or not plain]
    said = [row.text for row in told]
    if len(said) > MAX_LINES:
        # the most telling ones, in their order; how it ends comes last
        best = sorted(range(len(told) - 1), key=lambda place: (told[place].weight, place))[: MAX_LINES - 2]
        said = [*(said[place] for place in sorted(best)), f"and {len(said) - MAX_LINES + 1} more", said[-1]]
    return tuple(text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…" for text in said)


def _width(lines: Sequence[str]) -> float:
    return NARROW if not lines else max(map(len, lines)) * CHARACTER + SYMBOL


def _box(timeline: Timeline, column: Column, *, x: float, track: int, prefix: str, same: int) -> Box:
    row = timeline.rows[column.head]
    lines = _lines(timeline, column)
    return Box(
        ident=f"{prefix}{column.head}",
        turn=row.turn,
        track=track,
        kind=row.kind,
        symbol=_symbol(row),
        x=x,
        y=0.0,
        width=_width(lines),
        height=max(1, len(lines)) * LINE + BOX_PADDING,
        lines=lines,
        marks=column.marks,
        label=describe(timeline, column),
        alike=column.head < same,
    )


def _symbol(row: Row) -> str:
    ending = next((symbol for text, symbol in _ENDINGS if row.text.startswith(text)), "·")
    return _SYMBOLS.get(row.kind, ending)


@dataclass(frozen=True, slots=True)
class _Span:
    """Where the bar of an op begins and ends. level: 0 for the first below the boxes of its track."""

    op: Pending
    track: int
    begin: float
    end: float
    level: int


def _spans(
    timeline: Timeline, columns: Sequence[Column], boxes: Sequence[Box], lanes: Sequence[int], *, end: float
) -> list[_Span]:
    """Return the bars of all ops, those of one track that overlap below each other.

    An op whose task has no turn here is shown on the last track.
    """
    middle = {column.head: box.x + box.width / 2 for column, box in zip(columns, boxes, strict=True)}
    turns: dict[int, list[int]] = {}
    for column in columns:
        if timeline.rows[column.head].kind == "turn":
            turns.setdefault(timeline.rows[column.head].lane, []).append(column.head)
    taken: dict[int, list[float]] = {}
    spans: list[_Span] = []
    for parked, op in sorted(((parked_in(timeline, op), op) for op in timeline.ops), key=lambda item: item[0]):
        if parked not in middle or (op.arrived >= 0 and op.arrived not in middle):
            continue
        last = op.arrived if op.arrived >= 0 else _given_up(op, parked, turns.get(op.lane, []))
        begin, until = middle[parked], middle.get(last, end)
        track = lanes.index(op.lane) if op.lane in lanes else len(lanes) - 1
        levels = taken.setdefault(track, [])
        level = next((level for level, free in enumerate(levels) if free <= begin), len(levels))
        levels[level : level + 1] = [until]
        spans.append(_Span(op, track, begin, until, level))
    return spans


def _given_up(op: Pending, parked: int, turns: Sequence[int]) -> int:
    """Return the row in which the task of an op that never arrived goes on without it, or -1.

    A job that was handed to a thread runs, whatever becomes of its task.
    """
    if op.kind in ("job", "done"):
        return -1
    return next((row for row in turns if row > parked), -1)


def _tracks(timeline: Timeline, lanes: Sequence[int], boxes: Sequence[Box], spans: Sequence[_Span]) -> list[Track]:
    y = AXIS
    tracks = []
    for index, lane in enumerate(lanes):
        own = [box for box in boxes if box.track == index]
        levels = 1 + max((span.level for span in spans if span.track == index), default=-1)
        name, path = (timeline.lanes[lane].name, timeline.lanes[lane].path) if lane >= 0 else (EVENT_LOOP, EVENT_LOOP)
        name = name if len(name) <= MAX_NAME else "…" + name[1 - MAX_NAME :]  # its end tells more
        name_lines = -(-len(name) // NAME_CHARACTERS)
        height = max(
            max(box.height for box in own) + levels * BAR_SPACE + 2 * TRACK_PADDING,
            name_lines * LINE + 2 * TRACK_PADDING,
        )
        middle = y + TRACK_PADDING + FIRST_LINE
        tracks.append(Track(name, path, y, height, middle, own[0].x, own[-1].x + own[-1].width))
        y += height
    return tracks


def _bar(span: _Span, *, below: float) -> Bar:
    """Return a bar. below: the y under the boxes of its track."""
    op = span.op
    how = "held" if op.held else ("early" if op.early else "")
    name = op.name.rpartition("/")[2]
    return Bar(
        name=name,
        how=how,
        x=span.begin,
        y=below + span.level * BAR_SPACE + 2,
        width=max(span.end - span.begin, 4.0),
        arrived=op.arrived >= 0,
        label=", ".join(filter(None, (name, how, "" if op.arrived >= 0 else "does not arrive"))),
    )


def _arrow(cause: Box, woken: Box) -> Arrow:
    """Return the arrow from one box to the beginning of another.

    Between tracks it runs up or down in the column of its cause, where no other box is, and then along the track of
    what it wakes, so that arrows from one cause share a trunk.
    """
    y = woken.y + FIRST_LINE
    if cause.track == woken.track:
        return Arrow(cause.ident, woken.ident, f"M{cause.x + cause.width:g} {y:g}H{woken.x:g}")
    x = cause.x + cause.width - TRUNK
    begin, turn = (cause.y + cause.height, y - TRUNK) if woken.track > cause.track else (cause.y, y + TRUNK)
    return Arrow(
        cause.ident,
        woken.ident,
        f"M{x:g} {begin:g}V{turn:g}Q{x:g} {y:g} {x + TRUNK:g} {y:g}H{woken.x:g}",
    )
