"""A search result for a person: at most 40 lines.

Owns the layout; must not know whether a terminal shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model.explanation import Explanation, Moment, Timeline
from harness.report.json import text_of
from harness.report.lines import LABEL, PIPED, Line, Span, Style, counted, labelled, relative, shorten
from harness.report.table import table
from harness.search.result import SearchResult

MAX_LINES = 40
MAX_ROWS = 22


def summary_table(rows: Sequence[tuple[Mapping[str, str], SearchResult]], *, rung: str) -> str:
    """Return one line per search: storage, verdict, rung, executions, seconds and schedule."""
    cells = [("storage", "verdict", "rung", "executions", "seconds", "schedule")]
    for setup, result in rows:
        found = result.counterexample
        cells.append(
            (
                setup.get("storage", "-"),
                result.verdict,
                rung if found is None else found.rung.label,
                str(result.executions if found is None else found.found_after),
                f"{result.seconds:.2f}",
                "-" if found is None else text_of(found),
            )
        )
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in cells
    )


def failure_report(explanation: Explanation, *, replay: str, export: str = "", width: int = PIPED) -> list[Line]:
    """Return the report of one failing schedule, at most 40 lines.

    replay, export: the command lines that replay and export it; they are not wrapped. width: columns.
    """
    lines = _head(explanation, width)
    tail: list[Line] = [(), (Span("  replay: ", "dim"), Span(replay, "command"))]
    if export:
        tail.append((Span("  export: ", "dim"), Span(export, "command")))
    nearest = _nearest(explanation, width)
    limit = min(MAX_LINES - len(lines) - len(nearest) - len(tail) - 1, MAX_ROWS)
    rows = table(explanation.failing, width=width, limit=limit)
    return [*lines, *([(), *rows] if rows else []), *nearest, *tail]


def one_line(explanation: Explanation) -> str:
    """Return what failed and what decides, in one line."""
    deciding = explanation.deciding
    said = f"{explanation.violation.oracle} is violated"
    if deciding is None:
        return f"{said}: {explanation.violation.message.partition(chr(10))[0]}"
    return f"{said} when {deciding}"


def _head(explanation: Explanation, width: int) -> list[Line]:
    violation = explanation.violation
    title = f"{explanation.title}: {violation.oracle} is violated"
    lines: list[Line] = [(Span(title, "title"), Span(f" (rung {explanation.rung.label})"))]
    if explanation.promise:
        lines += labelled("expected", explanation.promise, width=width, style="good", limit=2)
    lines += labelled(
        "got", violation.message, width=width, style="bad", limit=8 if violation.oracle != "assertion" else 5
    )
    lines += labelled("assumes", _assumption(explanation), width=width) if explanation.sleeps else []
    lines += labelled("found", _effort(explanation), width=width)
    lines += labelled("schedule", explanation.failing.text, width=width, style="key")
    if explanation.minimal is not None:
        lines += labelled("minimal", _minimal(explanation), width=width, limit=2)
    lines += _decides(explanation, width)
    for oracle, reason in explanation.without.items():
        lines += labelled("left out", f"{oracle} ({reason})", width=width, limit=1)
    if explanation.difference:
        lines += labelled("differs", f"NOT deterministic: {explanation.difference}", width=width, style="bad")
    return lines


def _assumption(explanation: Explanation) -> str:
    sleeps = "; ".join(explanation.sleeps[:4])
    return f"that these sleeps stand for work of unknown duration: {relative(sleeps)}"


def _effort(explanation: Explanation) -> str:
    found = f"after {counted(explanation.found_after, 'execution')} by {explanation.found_by}"
    explained = f"explained with {counted(explanation.executions, 'execution')}"
    return "; ".join([*([found] if explanation.found_after else []), *([explained] if explanation.executions else [])])


def _minimal(explanation: Explanation) -> str:
    minimal = explanation.minimal
    assert minimal is not None  # asked for only then
    tried = f"({minimal.tried} tried)"
    if minimal.complete and not minimal.below:
        # the choices that make up a program are no deviations of its order
        drawn = "the program that was drawn" if explanation.deviations else "it"
        return f"{drawn} fails in default order, without a deviation"
    if minimal.complete:
        return f"no schedule with fewer than {counted(minimal.below, 'deviation')} fails {tried}"
    below = f"none with fewer than {minimal.below} fails {tried}; " if minimal.below else ""
    return f"{below}others are not checked: {minimal.reason}"


def _decides(explanation: Explanation, width: int) -> list[Line]:
    deciding = explanation.deciding
    if deciding is None:
        said = explanation.unexplained
        said = f"nothing: {said}" if said else "no ordering of two events, nor two or three of them together, does"
        return labelled("decides", said, width=width)
    lines: list[Line] = []
    for ordering in deciding.orderings:
        begin = "and        " if lines else "fails when "
        lines.append(_moment("" if lines else "decides", begin, ordering.first, width, "bad"))
        lines.append(_moment("", "    before ", ordering.second, width, "good"))
    way = "one of them is the other way round" if len(deciding.orderings) > 1 else "it is the other way round"
    alike = ", all with these shapes and faults," if deciding.alike else ""
    agree = f"{deciding.failing} failing and {deciding.passing} passing executions{alike} agree"
    made = f", {deciding.aimed} made to check it" if deciding.aimed else ""
    return [*lines, *labelled("", f"passes when {way}; {agree}{made}", width=width)]


def _moment(label: str, begin: str, moment: Moment, width: int, style: Style) -> Line:
    place = f"  {relative(moment.where)}" if moment.where else ""
    room = width - 2 - LABEL - len(begin)
    if len(moment.name) + len(place) > room:
        place = f"  {place.rpartition('/')[2]}".rstrip()
    name = shorten(moment.name, max(room - len(place), 20))
    return (Span(f"  {label.ljust(LABEL)}{begin}", "dim"), Span(name, style), Span(place, "dim"))


def _nearest(explanation: Explanation, width: int) -> list[Line]:
    """Return the difference to the nearest passing schedule."""
    passing = explanation.passing
    if passing is None:
        return []
    lines: list[Line] = [()]
    for index, change in enumerate(explanation.changes[:4]):
        head = "passes" if not index else ""
        style: Style = "good" if change.startswith("+") else "bad"
        lines += labelled(head, change, width=width, style=style, limit=1)
    if len(explanation.changes) > 4:
        lines += labelled("", f"... {len(explanation.changes) - 4} more", width=width)
    return [*lines, *_then(explanation, passing, width)]


def _then(explanation: Explanation, passing: Timeline, width: int) -> list[Line]:
    """Say in which turns what decides happens there."""
    if explanation.deciding is None:
        return []
    for ordering, (first, second) in zip(explanation.deciding.orderings, passing.deciding, strict=True):
        if second >= 0 and (first < 0 or second < first):
            said = f"there {ordering.second.name} in turn {passing.rows[second].turn}"
            if first >= 0:
                said += f", before {ordering.first.name} in turn {passing.rows[first].turn}"
            return labelled("", said, width=width, limit=2)
    return []
