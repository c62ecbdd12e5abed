"""One page per counterexample: what it says, in the order in which it says it.

Owns the choice of what belongs on a page and how its parts point at each other; must not know HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model.explanation import Explanation, Moment, Row, Timeline
from harness.report.lines import counted
from harness.report.timeline.columns import Column, alike, columns_of, parked_in
from harness.report.timeline.drawing import draw
from harness.report.timeline.shapes import Drawing
from harness.report.timeline.sources import Excerpt, Place, Sources, Stack
from harness.report.timeline.words import ending_clause, format_time, in_order, lane_path


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table of all turns. ident: its anchor. told: what happened, and where if it is a fact.

    woken_by, wakes: anchors of other rows and their turns. ops: what was parked in it. stack: anchor of one, or "".
    """

    ident: str
    turn: int
    time: str
    lane: str
    told: tuple[tuple[str, Place], ...]
    marks: tuple[str, ...]
    place: Place
    woken_by: tuple[tuple[str, int], ...]
    wakes: tuple[tuple[str, int], ...]
    parks: tuple[str, ...]
    stack: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One execution. fails: whether it breaks the promise. left_out: rows that the page does not show."""

    ident: str
    heading: str
    text: str
    fails: bool
    ending: str
    rung: str
    drawing: Drawing
    lines: tuple[Line, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a deciding ordering, and its anchor in each panel, "" where it does not happen."""

    name: str
    place: Place
    anchors: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """All that a page says.

    message: the violation, one paragraph per line. facts: a name and a value each, such as the rung. orderings: the
    deciding ones. decided: what was tried to tell that they decide, or why there is none.
    """

    title: str
    oracle: str
    promise: str
    message: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    replay: str
    export: str
    orderings: tuple[tuple[Event, Event], ...]
    decided: str
    changes: tuple[str, ...]
    panels: tuple[Panel, ...]
    stacks: tuple[Stack, ...]
    excerpts: tuple[Excerpt, ...]


def make_page(explanation: Explanation, *, replay: str, export: str = "") -> Page:
    """Return the page of ``explanation``.

    replay: the command line that executes the schedule again. export: the one that writes it as a test, or "".
    """
    shown = [("f", "Failing schedule" if explanation.failing.fails else "Schedule", explanation.failing)]
    if explanation.passing is not None:
        shown.append(("p", "Nearest passing schedule", explanation.passing))
    columns = [columns_of(timeline) for _, _, timeline in shown]
    sources = _sources(explanation, [timeline for _, _, timeline in shown], columns)
    same = 0 if explanation.passing is None else alike(explanation.failing, explanation.passing)
    return Page(
        title=explanation.title,
        oracle=explanation.violation.oracle,
        promise=explanation.promise,
        message=tuple(explanation.violation.message.splitlines()),
        facts=tuple(_facts(explanation)),
        replay=replay,
        export=export,
        orderings=tuple(_orderings(explanation, sources, columns)),
        decided=_decided(explanation),
        changes=explanation.changes,
        panels=tuple(
            _panel(timeline, own, prefix=prefix, heading=heading, same=same, sources=sources)
            for (prefix, heading, timeline), own in zip(shown, columns, strict=True)
        ),
        stacks=sources.stacks,
        excerpts=sources.excerpts,
    )


def _facts(explanation: Explanation) -> Iterator[tuple[str, str]]:
    yield "rung", explanation.rung.label
    if explanation.sleeps:
        yield "sleeps that stand for work of unknown duration", "; ".join(explanation.sleeps)
    if explanation.found_after:
        yield "found", f"after {counted(explanation.found_after, 'execution')} by {explanation.found_by}"
    if explanation.minimal is not None and explanation.minimal.below:
        yield "smallest", f"every schedule of fewer than {counted(explanation.minimal.below, 'deviation')} passes"
    if explanation.difference:
        yield "NOT deterministic", f"executed again, it went another way; first difference: {explanation.difference}"
    for oracle, reason in explanation.without.items():
        yield "not judged", f"{oracle} ({reason})"


def _decided(explanation: Explanation) -> str:
    deciding = explanation.deciding
    if not explanation.failing.fails and not explanation.violation.oracle:
        return "No promise is broken, so nothing decides."
    if deciding is None:
        if explanation.unexplained:
            return f"No ordering is known to decide: {explanation.unexplained}."
        return "No ordering of events separates failing from passing executions."
    words = (
        f"{deciding.failing} of {deciding.failing} executions in which it holds fail; "
        f"{deciding.passing} of {deciding.passing} in which it does not hold pass"
    )
    if deciding.aimed:
        words += f"; {deciding.aimed} executions were made on purpose to check it"
    if deciding.alike:
        words += ", all with the await shapes, faults and set orders of the failing schedule"
    return words + "."


def _orderings(
    explanation: Explanation, sources: Sources, columns: Sequence[Sequence[Column]]
) -> Iterator[tuple[Event, Event]]:
    if explanation.deciding is None:
        return
    shown = [explanation.failing, *([] if explanation.passing is None else [explanation.passing])]
    for number, ordering in enumerate(explanation.deciding.orderings):
        events = []
        for which, moment in enumerate((ordering.first, ordering.second)):
            anchors = []
            for (prefix, how), timeline, own in zip((("f", "failing"), ("p", "passing")), shown, columns, strict=False):
                pair = timeline.deciding[number : number + 1]
                head = _column_at(own, pair[0][which] if pair else -1)
                anchors.append((how, "" if head is None else f"{prefix}{head.head}"))
            events.append(Event(moment.name, sources.place(moment.where), tuple(anchors)))
        yield events[0], events[1]


def _column_at(columns: Sequence[Column], row: int) -> Column | None:
    """Return the column that holds ``row``, if it is shown."""
    return next((column for column in columns if row in (column.head, *column.facts)), None) if row >= 0 else None


def _sources(explanation: Explanation, timelines: Sequence[Timeline], columns: Sequence[Sequence[Column]]) -> Sources:
    rows = [
        timeline.rows[index]
        for timeline, own in zip(timelines, columns, strict=True)
        for column in own
        for index in (column.head, *column.facts)
    ]
    moments: list[Moment] = []
    if explanation.deciding is not None:
        for ordering in explanation.deciding.orderings:
            moments += [ordering.first, ordering.second]
    return Sources([*(row.where for row in rows), *(moment.where for moment in moments)], [row.stack for row in rows])


def _panel(
    timeline: Timeline, columns: Sequence[Column], *, prefix: str, heading: str, same: int, sources: Sources
) -> Panel:
    shown = sum(1 + len(column.facts) for column in columns)
    return Panel(
        ident="failing" if prefix == "f" else "passing",
        heading=heading,
        text=timeline.text,
        fails=timeline.fails,
        ending=ending_clause(timeline.ending),
        rung=timeline.rung.label,
        drawing=draw(timeline, columns, prefix=prefix, same=same),
        lines=tuple(_lines(timeline, columns, prefix=prefix, sources=sources)),
        left_out=len(timeline.rows) - shown,
    )


def _lines(timeline: Timeline, columns: Sequence[Column], *, prefix: str, sources: Sources) -> Iterator[Line]:
    heads = {index: column.head for column in columns for index in (column.head, *column.facts)}
    causes: dict[int, list[tuple[str, int]]] = {}
    effects: dict[int, list[tuple[str, int]]] = {}
    for wake in timeline.wake_ups:
        if wake.cause in heads and wake.woken in heads:
            cause, woken = heads[wake.cause], heads[wake.woken]
            causes.setdefault(woken, []).append((f"{prefix}{cause}", timeline.rows[cause].turn))
            effects.setdefault(cause, []).append((f"{prefix}{woken}", timeline.rows[woken].turn))
    parked: dict[int, list[str]] = {}
    for op in timeline.ops:
        words = f"{op.name} (held)" if op.held else f"{op.name} (let in early)" if op.early else op.name
        parked.setdefault(parked_in(timeline, op), []).append(
            words if op.arrived >= 0 else f"{words}, which does not arrive"
        )
    for column in columns:
        row: Row = timeline.rows[column.head]
        yield Line(
            ident=f"{prefix}{column.head}",
            turn=row.turn,
            time=format_time(row.now_s),
            lane=lane_path(timeline, column),
            told=tuple(
                (timeline.rows[index].text, sources.place("" if index == column.head else timeline.rows[index].where))
                for index in in_order(timeline, column)
            ),
            marks=column.marks,
            place=sources.place(row.where),
            woken_by=tuple(causes.get(column.head, ())),
            wakes=tuple(effects.get(column.head, ())),
            parks=tuple(parked.get(column.head, ())),
            stack=sources.stack_ident(row.stack),
        )
