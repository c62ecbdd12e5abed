"""latest_is_maximal: the latest checkpoint is the one that holds most.

Owns this one promise; must not know how a storage orders its checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import Run, family, runs_of, saves_checkpoint

NEEDS = ("storage",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: no checkpoint of the run strictly extends the one that ``get_latest`` returns.

    A checkpoint extends another of the same run, or of a run that continues it, when it descends from it, or
    when it holds all of its steps and more. Only saves that were committed before the question was asked
    count, and at the end of the program whatever is stored. Runs that began on purpose from another checkpoint
    than the latest are left out.
    """
    runs = runs_of(journal)
    saves = [event for event in journal if saves_checkpoint(event) and event.run in runs]
    called = {event.data["checkpoint"]: event for event in saves}
    commits: list[Event] = []
    for event in journal:
        if saves_checkpoint(event, "save.committed") and event.run in runs:
            commits.append(event)
        elif event.kind == "storage.latest":
            before = commits[: event.data.get("commits", len(commits))]
            found = _greater(runs, before, called.get(event.data["checkpoint"]))
            if found is not None:
                return _violation(found, event.turn)
        elif event.kind == "storage.state":
            stored = [called[item["checkpoint"]] for item in event.data["checkpoints"] if item["checkpoint"] in called]
            for latest in event.data["latest"].values():
                found = _greater(runs, stored, called.get(latest))
                if found is not None:
                    return _violation(found, event.turn)
    return None


def _greater(runs: dict[int, Run], commits: Sequence[Event], own: Event | None) -> tuple[Event, Event] | None:
    """Return ``own``, the save of the latest checkpoint, and one of a checkpoint that extends it, or None."""
    saves = {event.data["checkpoint"]: event for event in commits}
    if own is None:
        return None
    related = {number for number in family(runs, own.run) if not runs[number].forks}
    for other in reversed(commits):
        if other.data["checkpoint"] == own.data["checkpoint"] or other.run not in related:
            continue
        if set(own.data["steps"]) < set(other.data["steps"]) or _descends(saves, other, own.data["checkpoint"]):
            return own, other
    return None


def _descends(saves: dict[str | None, Event], event: Event, ancestor: str) -> bool:
    seen: set[str] = set()
    current: Event | None = event
    while current is not None and current.data["checkpoint"] not in seen:
        seen.add(current.data["checkpoint"])
        if current.data["previous"] == ancestor:
            return True
        current = saves.get(current.data["previous"])
    return False


def _violation(found: tuple[Event, Event], turn: int) -> Violation:
    latest, greater = found
    return Violation(
        "latest_is_maximal",
        f"the latest checkpoint is {latest.subject} of run {latest.run} ({len(latest.data['steps'])} steps, "
        f"{latest.data['timestamp']}), which {greater.subject} of run {greater.run} extends "
        f"({len(greater.data['steps'])} steps, {greater.data['timestamp']})",
        turn,
    )


PLUGIN = judge
