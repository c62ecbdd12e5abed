"""The runs of a journal and how they are related, for oracles to share.

Owns the reading of ``run.started`` and ``run.ended``; judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.model.outcome import Event


@dataclass(slots=True)
class Run:
    """One run. begun, ended: positions in the journal; ended is None while it goes on.

    resumes: the run that it continues. checkpoint: what it began from. latest: whether that was the latest.
    twin: whether another instance resumed the same at once. instance: the ordinal of the workflow instance.
    """

    number: int
    name: str
    begun: int
    data: dict[str, Any]
    ended: int | None = None
    end: dict[str, Any] = field(default_factory=dict)

    @property
    def resumes(self) -> int | None:
        """The number of the run that it continues, or None."""
        found: int | None = self.data.get("resumes")
        return found

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint that it began from, or None."""
        found: str | None = self.data.get("checkpoint")
        return found

    @property
    def forks(self) -> bool:
        """Whether it may fork the chain: it did not begin from the latest, or another instance began there too."""
        return not self.data.get("latest", True) or bool(self.data.get("twin"))

    @property
    def how(self) -> str:
        """How it ended; empty while it goes on."""
        return str(self.end.get("how", ""))


def runs_of(journal: Sequence[Event]) -> dict[int, Run]:
    """Return the runs of a journal by number, in the order in which they began."""
    runs: dict[int, Run] = {}
    for index, event in enumerate(journal):
        if event.kind == "run.started":
            runs[event.run] = Run(event.run, event.subject, index, event.data)
        elif event.kind == "run.ended" and event.run in runs:
            runs[event.run].ended = index
            runs[event.run].end = event.data
    return runs


def saves_checkpoint(event: Event, kind: str = "save.called") -> bool:
    """Return whether ``event`` is of the save of a checkpoint, which has a place in a chain.

    Some frameworks also save what belongs to a checkpoint, or those of graphs inside of a graph.
    """
    return event.kind == kind and "checkpoint" in event.data


def lineage(runs: dict[int, Run], number: int) -> list[int]:
    """Return ``number`` and the runs that it continues, newest first."""
    found: list[int] = []
    current: int | None = number
    while current is not None and current in runs and current not in found:
        found.append(current)
        current = runs[current].resumes
    return found


def family(runs: dict[int, Run], number: int) -> set[int]:
    """Return every run that continues the same first run as ``number`` does."""
    root = lineage(runs, number)[-1:]
    return {other for other in runs if lineage(runs, other)[-1:] == root}
