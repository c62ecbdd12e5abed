"""ownership: a run cancels only what is its own.

Owns this one promise; must not know how a framework keeps its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation

NEEDS = ("cancellations",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: only tasks of the run are cancelled.

    A task belongs to the run whose task created it, directly or not. Who cancels is the task that is running
    at that moment: what comes from outside of every run, such as a timeout, is not judged.
    """
    for event in journal:
        if event.kind == "task.cancelled" and event.data["owner"] != event.run:
            owner = event.data["owner"]
            whose = "no run" if owner is None else f"run {owner}"
            return Violation(
                "ownership", f"run {event.run} cancelled the task {event.subject}, which belongs to {whose}", event.turn
            )
    return None


PLUGIN = judge
