"""Timelines: what a witness saw of one execution, as rows, lanes, ops and wake-ups.

Owns the wording of a row and how much it matters; must not know a loop, nor how rows are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.model.explanation import NOISE, Lane, Pending, Row, RowKind, Timeline, WakeUp
from harness.model.outcome import Execution, Turn, Violation
from harness.search.deviations import CHOICE, CHOICE_INSIDE, with_choices
from harness.search.events import MERE, Namer, in_words, shows_at, weight_of
from harness.search.witness import Seen, Witness

# Facts that come from outside of the program, between two turns, at a moment that the schedule chose.
_OUTSIDE = re.compile(r"run \d+ (cancelled|timed out|ended \(crashed\))")
_TURNS = re.compile(r"\(turn (\d+)\)")
_KINDS: tuple[tuple[str, RowKind], ...] = (("deliver ", "arrival"), ("call ", "callback"))


def timeline_of(execution: Execution, witness: Witness, *, text: str, oracle: str) -> Timeline:
    """Return the timeline of a witnessed execution. text: its schedule in words. oracle: the promise in question."""
    broken = next((item for item in execution.violations if item.oracle == oracle), None)
    entries = [(seen, seen.entry) for seen in witness.entries if seen.entry is not None]
    lanes = _lanes(entries, witness)
    entries, shown = with_choices(entries, execution, witness)
    numbers = {lane.path: index for index, lane in enumerate(lanes)}
    places = {seen: index for index, (seen, _) in enumerate(entries)}
    ops = {number: index for index, number in enumerate(witness.ops)}
    told = _told(broken)
    namer = Namer()
    rows: list[Row] = []
    turn_lane: dict[int, int] = {}
    for seen, entry in entries:
        lane = _lane_of(seen, entry, witness, numbers)
        if entry.lane.startswith("run ") or entry.lane == CHOICE_INSIDE:
            lane = turn_lane.get(entry.number, -1)
        elif entry.lane != CHOICE and not entry.what.startswith("deliver "):
            turn_lane[entry.number] = lane
        chosen = entry.lane in (CHOICE, CHOICE_INSIDE)
        name, own = "" if chosen else namer.name(entry), lanes[lane].path if lane >= 0 else ""
        rows.append(_row(seen, entry, name, lane=lane, own=own, op=ops.get(seen.op, -1), told=told))
    pending = _pending(witness, places, numbers)
    rows = _with_waits(rows, pending)
    deviations = tuple(-1 if seen is None else places[seen] for seen in shown)
    _tell_what_goes_first(rows, deviations, execution)
    return Timeline(
        schedule=execution.schedule,
        text=text,
        rung=execution.rung,
        ending=execution.ending,
        fails=broken is not None,
        lanes=lanes,
        rows=tuple(_with_endings(_with_holds(rows, pending, deviations), execution)),
        ops=pending,
        wake_ups=tuple(
            WakeUp(places[seen.cause], places[seen])
            for seen, _ in entries
            if seen.cause is not None and seen.cause in places
        ),
        broken=-1 if broken is None else _broken_at(rows, broken, execution),
        deviations=deviations,
    )


def is_from_outside(row: Row) -> bool:
    """Return whether a row is a fact that no turn brought about: a run is cancelled, its time is up, or it dies."""
    return row.kind == "fact" and _OUTSIDE.match(row.text) is not None


def _with_endings(rows: Iterable[Row], execution: Execution) -> Iterator[Row]:
    """Yield ``rows``; one in which a run ended says how."""
    ends = {(event.turn, event.run): event.data["how"] for event in execution.journal if event.kind == "run.ended"}
    for row in rows:
        how = ends.get((row.turn, row.run)) if row.text.endswith(" ended") else None
        yield row if how is None else replace(row, text=f"{row.text} ({how})")


def mark(timeline: Timeline, orderings: Iterable[tuple[str, str]]) -> Timeline:
    """Return ``timeline`` with the rows of the events of ``orderings``, names in words, which then matter most."""
    first: dict[str, int] = {}
    for index, row in enumerate(timeline.rows):
        if row.name:
            first.setdefault(row.name, index)
    found = tuple((first.get(one, -1), first.get(other, -1)) for one, other in orderings)
    wanted = {index for pair in found for index in pair}
    rows = tuple(
        replace(row, weight=0) if index in wanted and row.weight else row for index, row in enumerate(timeline.rows)
    )
    return replace(timeline, rows=rows, deciding=found)


def _lanes(entries: Sequence[tuple[Seen, Turn]], witness: Witness) -> tuple[Lane, ...]:
    """Return the tasks in the order of their first turn, those that only wait behind them."""
    ran = [entry.lane for _, entry in entries if _is_turn(entry)]
    paths = list(dict.fromkeys([*ran, *(op.owner for op in witness.ops.values() if op.owner != "loop")]))
    return tuple(Lane(path, name) for path, name in zip(paths, short_names(paths), strict=True))


def _is_turn(entry: Turn) -> bool:
    return entry.lane != "loop" and not entry.lane.startswith("run ")


def short_names(paths: Sequence[str]) -> list[str]:
    """Return of each path the shortest end, at a ``/``, that no other of them has."""
    return [_short(path, paths) for path in paths]


def _short(path: str, paths: Sequence[str]) -> str:
    """Return the shortest end of ``path``, at a ``/``, that no other of ``paths`` has."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        end = "/".join(parts[-count:])
        if sum(other == end or other.endswith("/" + end) for other in paths) == 1:
            return end
    return path


def _lane_of(seen: Seen, entry: Turn, witness: Witness, numbers: dict[str, int]) -> int:
    if entry.what.startswith("deliver "):
        name = entry.what.removeprefix("deliver ")
        owner = witness.ops[seen.op].owner if seen.op else name.rpartition("/")[0]
        return numbers.get(owner, -1)
    return numbers.get(entry.lane, -1)


def _told(violation: Violation | None) -> set[int]:
    """Return the turns that a violation names."""
    if violation is None:
        return set()
    return {violation.turn, *(int(turn) for turn in _TURNS.findall(violation.message))}


def _row(seen: Seen, entry: Turn, name: str, *, lane: int, own: str, op: int, told: set[int]) -> Row:
    kind: RowKind = next((kind for mark, kind in _KINDS if entry.what.startswith(mark)), "turn")
    run = -1
    if entry.lane.startswith("run "):
        kind, run = "fact", int(entry.lane.removeprefix("run "))
    elif entry.lane in (CHOICE, CHOICE_INSIDE):
        kind = "choice"
    elif entry.what == "held":
        kind = "held"
    where = seen.stack[-1].where if entry.what.startswith("raises") and seen.stack else entry.where
    weight = weight_of(name) if name else NOISE
    if kind == "fact" and entry.number in told and weight < NOISE:
        weight = min(weight, 1)
    return Row(
        turn=entry.number,
        now_s=entry.now_s,
        lane=lane,
        kind=kind,
        name=in_words(name),
        text=_text(entry, own),
        where=where,
        weight=weight,
        op=op,
        run=run,
        stack=seen.stack,
    )


def _text(entry: Turn, lane: str) -> str:
    """Return what happened, without the name of its own lane; a choice reads as in the schedule."""
    if entry.lane in (CHOICE, CHOICE_INSIDE):
        return entry.what
    if entry.lane.startswith("run "):
        if entry.what.startswith(("run.started", "run.ended", "run.cancelled", "run.timeout")):
            how = entry.what.partition(" ")[0].removeprefix("run.")
            return f"{entry.lane} {'timed out' if how == 'timeout' else how}"
        words = in_words(entry.what)
    else:
        words = in_words(entry.what) if entry.what.startswith("deliver ") else entry.what
        words = words.removeprefix(f"{lane}/")
    name = lane.rpartition("/")[2].partition("#")[0]
    for mark in (f"{name}/", f"{name} "):
        words = words.removeprefix(mark)
    return words


def _pending(witness: Witness, places: dict[Seen, int], numbers: dict[str, int]) -> tuple[Pending, ...]:
    arrived = {seen.op: place for seen, place in places.items() if seen.op}
    return tuple(
        Pending(
            name=op.name,
            kind=op.kind,
            lane=numbers.get(op.owner, -1),
            where=op.where,
            parked=-1 if op.parked is None else places.get(op.parked, -1),
            arrived=arrived.get(number, -1),
            held=op.held,
            early=op.early,
        )
        for number, op in witness.ops.items()
    )


def _with_waits(rows: Sequence[Row], ops: Sequence[Pending]) -> list[Row]:
    """Return the rows with what a turn waits for, where it parked something of its own."""
    found = list(rows)
    for op in ops:
        row = found[op.parked] if op.parked >= 0 else None
        if row is not None and row.text == "waits" and row.lane == op.lane:
            how = ", held" if op.held else ""
            text = f"waits for {op.name.rpartition('/')[2]}{how}"
            # a deadline says nothing where it is only set; a sleep stands for work
            weight = 1 if op.held else MERE if op.name.rpartition("/")[2].startswith("timer(") else 6
            found[op.parked] = replace(row, text=text, weight=min(row.weight, weight))
    return found


def _tell_what_goes_first(rows: list[Row], deviations: Sequence[int], execution: Execution) -> None:
    """Let the rows of turns and arrivals that go before others say so."""
    for decision, index in zip(execution.schedule.decisions, deviations, strict=False):
        if decision.kind in ("lane", "arrival") and index >= 0 and rows[index].kind != "choice":
            how = " first" if rows[index].kind == "arrival" else ", run first"
            rows[index] = replace(rows[index], text=f"{rows[index].text}{how}")


def _with_holds(rows: Sequence[Row], ops: Sequence[Pending], deviations: Sequence[int]) -> list[Row]:
    """Return the rows with what deviates among what a reader must see."""
    return [
        replace(row, weight=min(row.weight, 1))
        if index in deviations or (row.op >= 0 and (ops[row.op].held or ops[row.op].early))
        else row
        for index, row in enumerate(rows)
    ]


def _broken_at(rows: Sequence[Row], violation: Violation, execution: Execution) -> int:
    """Return the row at which the violation shows: the last of its turn, of which a fact goes before what came next."""
    entries = [Turn(row.turn, row.now_s, "", row.text) for row in rows]
    first = shows_at(entries, violation, execution.ending)
    same = [index for index in range(first, len(rows)) if rows[index].turn == rows[first].turn]
    if rows[first:] and rows[first].text.startswith("raises"):
        return first
    facts = [index for index in same if rows[index].kind == "fact"]
    return (facts or same or [len(rows) - 1])[-1]
