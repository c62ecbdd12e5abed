"""linear_lineage: the checkpoints of a workflow form one chain.

Owns this one promise; must not know which checkpoint a storage calls the latest, only what it answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import Run, runs_of, saves_checkpoint

NEEDS = ("storage",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: one root, at most one child per checkpoint, and the latest reaches all.

    A run that begins with a message may add one root; one that resumes adds none. A second child is allowed
    where a run began on purpose: it was resumed from another checkpoint than the latest, or two instances
    were resumed at once. At the end of the program the latest checkpoint has no child. A save that was
    cancelled after its effect and before anybody knew counts as soon as its checkpoint is read or shows in the storage.
    """
    runs = runs_of(journal)
    chain = _Chain(runs)
    called = {event.data["checkpoint"]: event for event in journal if saves_checkpoint(event)}
    for event in journal:
        committed = [event] if saves_checkpoint(event, "save.committed") else []
        if event.kind == "storage.state":
            stored = [found["checkpoint"] for found in event.data["checkpoints"]]
            committed = [save for checkpoint, save in called.items() if checkpoint in stored]
        if event.kind in ("storage.latest", "storage.loaded") and event.data["checkpoint"] in called:
            committed = [called[event.data["checkpoint"]]]  # whatever became of its save: it is there
        for problem in filter(None, (chain.add(save) for save in committed if save.run in runs)):
            return Violation("linear_lineage", problem, event.turn)
        if event.kind == "storage.state":
            for latest in event.data["latest"].values():
                if child := chain.child_of(latest):
                    return Violation(
                        "linear_lineage",
                        f"the latest checkpoint {chain.name(latest)} does not reach its child {chain.name(child)}",
                        event.turn,
                    )
    return None


class _Chain:
    """The checkpoints that were committed so far."""

    def __init__(self, runs: dict[int, Run]) -> None:
        self._runs = runs
        self._saves: dict[str, Event] = {}
        self._roots: dict[int, str] = {}

    def add(self, event: Event) -> str:
        """Add what a save committed; return what is wrong with its place, or ""."""
        own, parent = event.data["checkpoint"], event.data["previous"]
        if own in self._saves:
            return ""
        run = self._runs[event.run]
        sibling = None if parent is None else self.child_of(parent)
        self._saves[own] = event
        if parent is None:
            root = self._roots.setdefault(event.run, own)
            if run.checkpoint is not None:
                return f"{self.name(own)} has no parent, though run {event.run} resumed from {run.checkpoint[:8]}"
            return "" if root == own else f"run {event.run} has two roots: {self.name(root)} and {self.name(own)}"
        if parent not in self._saves:
            return f"{self.name(own)} names the parent {parent[:8]}, which was never stored"
        if sibling is not None and not self._on_purpose(event.run, parent):
            return f"{self.name(sibling)} and {self.name(own)} are both children of {self.name(parent)}"
        return ""

    def child_of(self, parent: str | None) -> str | None:
        """Return a child of ``parent`` that is no fork on purpose, or None."""
        for own, event in self._saves.items():
            if parent is not None and event.data["previous"] == parent and not self._on_purpose(event.run, parent):
                return own
        return None

    def name(self, checkpoint: str | None) -> str:
        """Name a checkpoint by its save, such as ``save#2 (run 0)``."""
        event = self._saves.get(checkpoint or "")
        return str(checkpoint)[:8] if event is None else f"{event.subject} of run {event.run}"

    def _on_purpose(self, run: int, parent: str) -> bool:
        return self._runs[run].forks and self._runs[run].checkpoint == parent


PLUGIN = judge
