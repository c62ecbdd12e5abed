"""Which op becomes which gate, and in which order the gates open.

Owns the reading of a trace; must not know what a framework calls its ops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from harness.model.explanation import Explanation
from harness.model.outcome import Execution, Turn
from harness.report.export.gates import EVENT, Order, order_of
from harness.report.export.source import Source

# What stands for the passing of time.
CLOCK = "timeout"
_DELIVER = "deliver "


def order_in(
    execution: Execution,
    parked: Sequence[tuple[str, str]],
    gate: Callable[[str, str], str],
    *,
    until: int,
    last: Callable[[Turn], bool] = lambda _: False,
    events: Callable[[Turn], str] = lambda _: "",
) -> Order:
    """Return the order in which gates open in ``execution``.

    parked: the name and the source line of each op, in the order in which they began to wait. gate: returns the
    gate of one, or "". until: the turn of the violation. last: whether nothing that comes from this entry of the trace
    on decides. events: returns the gate that an entry stands for, such as a cancellation, or "".
    """
    delivered: list[str] = []
    for turn in execution.trace:
        if turn.number >= until and last(turn):
            break
        if event := events(turn):
            delivered.append(f"{EVENT}{event}")
        elif turn.what.startswith(_DELIVER):
            delivered.append(turn.what.removeprefix(_DELIVER))
    named = [(name, gate(name, where)) for name, where in parked or _delivered(execution)]
    return order_of(_reached(named, execution, until), delivered)


def in_short(explanation: Explanation) -> str:
    """Return what decides, such as ``flaky raises before done's save commits``; "" where it is no single ordering."""
    if explanation.deciding is None or len(explanation.deciding.orderings) > 1:
        return ""
    (ordering,) = explanation.deciding.orderings
    if any(
        moment.name.endswith((" arrives", " raises AssertionError")) for moment in (ordering.first, ordering.second)
    ):
        return ""  # says no more than the order itself
    return f"{_short(ordering.first.name)} before {_short(ordering.second.name)}"


def _short(event: str) -> str:
    event = re.sub(r" \(run \d+\)$", "", event)
    event = re.sub(r" raises \w+$", " raises", event)
    subject, _, verb = event.partition(" ")
    subject = re.sub(r"(?:.*/)?([^/#]+)(?:#\d+)?/save#\d+(?:\.\w+)?$", r"\1's save", subject)
    return f"{subject.rpartition('/')[2]} {verb}"


def gate_in(source: Source, op: str, where: str) -> str:
    """Return the gate that stands for an op of the program itself, or "" when nothing does."""
    name = op.rpartition("/")[2]
    if name.startswith(("quiet", "patience")) or name.endswith(".done"):
        return ""
    if name.startswith("timer("):
        return CLOCK
    if name.startswith("job:"):
        return "thread"
    if name.startswith("sleep("):
        line = where.rpartition(":")[2]
        return source.function_at(int(line)) if line.isdigit() else ""
    return name


def _delivered(execution: Execution) -> list[tuple[str, str]]:
    """Return the ops that arrived: all that is known where a schedule has no choice per op."""
    return [
        (turn.what.removeprefix(_DELIVER), turn.where) for turn in execution.trace if turn.what.startswith(_DELIVER)
    ]


def _reached(gates: Sequence[tuple[str, str]], execution: Execution, until: int) -> list[tuple[str, str]]:
    """Return the ops that began to wait before the violation: those of tasks that had been born by then."""
    arrived: dict[bool, set[str]] = {False: set(), True: set()}
    for turn in execution.trace:
        if turn.what.startswith(_DELIVER):
            arrived[turn.number > until].add(turn.what.removeprefix(_DELIVER))
    # An op that never arrived was cancelled, or waits still; one that arrived later only matters if it was held.
    held = {str(decision.option.rpartition(": ")[0]) for decision in execution.schedule.decisions}
    return [(name, gate) for name, gate in gates if name in arrived[False] or name in held or name not in arrived[True]]
