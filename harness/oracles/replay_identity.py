"""replay_identity: a replayed value is the call's own.

Owns this one promise; must not know how results are cached.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import lineage, runs_of


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: a value replayed for a call is the value that this logical call produced.

    A logical call is a step's name with its arguments. Calls that are equal may exchange their values, but
    none may appear more often than it was produced. A call that wrote its value and then failed produced it, too.
    Values whose text holds an address are not compared.
    """
    runs = runs_of(journal)
    produced: dict[tuple[int, str], list[str]] = defaultdict(list)
    replayed: dict[tuple[int, str], list[str]] = defaultdict(list)
    for event in journal:
        value = str(event.data.get("value", ""))
        if event.kind == "step.completed":
            produced[event.run, event.data["call"]].append(value)
        elif event.kind == "step.failed" and "wrote" in event.data:
            produced[event.run, event.data["call"]].append(event.data["wrote"])
        elif event.kind == "step.restored" and event.run in runs and " at 0x" not in value:
            call = event.data["call"]
            replayed[event.run, call].append(value)
            before = [item for run in lineage(runs, event.run) for item in produced[run, call]]
            if value not in before or replayed[event.run, call].count(value) > before.count(value):
                made = ", ".join(dict.fromkeys(before)) or "nothing"
                return Violation(
                    "replay_identity",
                    f"run {event.run} replayed {value} for {call} (turn {event.turn}), which produced {made}",
                    event.turn,
                )
    return None


PLUGIN = judge
