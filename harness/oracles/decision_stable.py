"""decision_stable: a replay goes the way that the run went.

Owns this one promise; must not know how a body decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import runs_of

NEEDS = ("decisions",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: the branch that the body took for a step is taken again on replay.

    A body decides by what a call does to it: it returns or it raises. A call that completed and then raised
    all the same (its save failed) must not return on replay. The n-th of equal calls of a run is compared with the
    n-th of the run that it continues. A call whose own execution failed is executed again: nothing is promised of it.
    """
    runs = runs_of(journal)
    seen: dict[tuple[int, str], list[tuple[str, Event]]] = defaultdict(list)
    unseen: dict[tuple[int, str], int] = defaultdict(int)
    for event in journal:
        if not event.kind.startswith("step.") or event.run not in runs:
            continue
        key = event.run, event.data["call"]
        if event.kind == "step.completed":
            unseen[key] += 1
        elif event.kind in ("step.returned", "step.raised"):
            completed = unseen[key] > 0
            unseen[key] -= completed
            returned = event.kind == "step.returned"
            seen[key].append(("returned" if returned else "raised" if completed else "failed", event))
            resumes = runs[event.run].resumes
            before = seen.get((resumes, key[1]), []) if returned and resumes is not None else []
            position = len(seen[key]) - 1
            if position < len(before) and before[position][0] == "raised":
                first = before[position][1]
                return Violation(
                    "decision_stable",
                    f"{key[1]} completed and raised {first.data['value']} to the body of run {first.run} "
                    f"(turn {first.turn}); on replay in run {event.run} it returned {event.data['value']}",
                    event.turn,
                )
    return None


PLUGIN = judge
