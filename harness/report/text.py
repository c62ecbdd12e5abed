"""A search result for a person: at most 40 lines.

Owns the layout; must not know whether a terminal shows it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.model.outcome import Execution, Turn
from harness.report.json import sleeps_concerned, text_of
from harness.search.result import Counterexample, SearchResult

MAX_LINES = 40
# Journal entries that a reader of a counterexample wants to see among the turns.
_FACTS = ("run.", "step.", "save.")


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


def failure_report(found: Counterexample, *, title: str, replay: str, without: Mapping[str, str] | None = None) -> str:
    """Return the report of one counterexample.

    replay: the command line that replays it. without: oracles that were switched off, with the reasons.
    """
    execution = found.execution
    lines = [f"{title}: {found.violation.oracle} is violated (rung {found.rung.label})"]
    lines += _wrap(found.violation.message, limit=12)
    if execution.inversions:
        lines.append("  it assumes that these sleeps stand for work of unknown duration:")
        lines += [f"    {_relative(name)}" for name in sleeps_concerned(execution.inversions)[:4]]
    lines.append(f"  found after {found.found_after} execution(s) by {found.found_by}")
    lines.append(f"  schedule: {text_of(found)}")
    lines += deciding_lines(found)
    if not found.replays:
        lines.append("  NOT deterministic: executed again, it went another way; first difference:")
        lines.append(f"    {found.difference or 'the same trace, another outcome'}")
    lines += [f"  not judged: {oracle} ({reason})" for oracle, reason in (without or {}).items()]
    tail = ["", f"  replay: {replay}"]
    turns = turns_that_matter(execution, limit=MAX_LINES - len(lines) - len(tail) - 1)
    lines += ["", *turns] if turns else []
    return "\n".join([*lines, *tail])


def deciding_lines(found: Counterexample) -> list[str]:
    """Return the deciding orderings, both ways, or the statement that there are none."""
    if found.explanation is None:
        return []
    deciding = found.deciding
    if deciding is None:
        return ["  decides: no single ordering of two events separates failing from passing executions"]
    lines: list[str] = []
    for ordering in deciding.orderings:
        first, second = (f"{moment.name}{_at(moment.where)}" for moment in (ordering.first, ordering.second))
        lines += [
            f"  {'           and' if lines else 'decides: fails when'}  {first}",
            f"              before  {second}",
        ]
    lines[-1] += f"   ({deciding.failing} of {deciding.failing} executions)"
    return [*lines, f"           passes the other way round ({deciding.passing} of {deciding.passing})"]


def _at(where: str) -> str:
    return f" [{_relative(where)}]" if where else ""


def turns_that_matter(execution: Execution, *, limit: int) -> list[str]:
    """Return the facts and failures of a trace, one line each: turn, virtual time, lane, what, where."""
    violation = max((item.turn for item in execution.violations), default=execution.turns)
    chosen = [turn for turn in execution.trace if turn.number <= violation and _matters(turn)]
    if len(chosen) > limit:
        gap = len(chosen) - limit + 1
        head = limit // 2
        chosen = [*chosen[:head], Turn(0, 0.0, "", f"... {gap} more turns ..."), *chosen[head + gap :]]
    width = max((len(turn.lane) for turn in chosen), default=0)
    lines = []
    for turn in chosen:
        place = f"  {_relative(turn.where)}" if turn.where else ""
        stamp = f"{turn.number:5d} {turn.now_s:9.6f}" if turn.lane else " " * 15
        lines.append(f"  {stamp}  {turn.lane.ljust(width)}  {turn.what}{place}")
    return lines


def _matters(turn: Turn) -> bool:
    if turn.lane.startswith("run "):
        return turn.what.startswith(_FACTS)
    return turn.what.startswith(("raises", "is cancelled", "held", "deliver"))


def _wrap(message: str, *, limit: int) -> list[str]:
    lines = [f"  {_relative(line)}" for line in message.splitlines()]
    return lines if len(lines) <= limit else [*lines[: limit - 1], f"  ... {len(lines) - limit + 1} more lines"]


def _relative(text: str) -> str:
    """Shorten paths under the current folder."""
    return text.replace(os.getcwd() + os.sep, "")
