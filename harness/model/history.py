"""What earlier executions of a search taught: how long they were, who took part, and where.

Owns the counts that schedulers may learn from; must not know a scheduler or a loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.model.choice import Place


class Step(NamedTuple):
    """A lane that ran or an op that arrived. path: of its task. place: what it is in every execution."""

    path: str
    place: Place
    interesting: bool


@dataclass(slots=True)
class History:
    """What the executions so far have in common.

    executions: how many were learned from. points: the most choice points over lanes and arrivals that one
    had. lanes: the paths that took part. counts: the most steps that one execution took of each kind.
    interesting: places of storage operations, failures and cancellations. memory: what a systematic
    scheduler keeps from one execution to the next. exhausted: such a scheduler has nothing left to try.
    """

    executions: int = 0
    points: int = 0
    lanes: dict[str, None] = field(default_factory=dict)
    counts: dict[tuple[str, Place], int] = field(default_factory=dict)
    interesting: dict[Place, None] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    exhausted: bool = False

    def learn(self, steps: list[Step], *, points: int) -> None:
        """Add one execution."""
        self.executions += 1
        self.points = max(self.points, points)
        for (path, place, interesting), count in Counter(steps).items():
            self.lanes[path] = None
            self.counts[path, place] = max(count, self.counts.get((path, place), 0))
            if interesting:
                self.interesting[place] = None

    def places(self) -> list[Place]:
        """Return every place that was met, in the order of the first meeting."""
        return list(dict.fromkeys(place for _, place in self.counts))


def parent_path(path: str) -> str:
    """Return the path of the task that made the one at ``path``: "" for the root."""
    return path.rpartition("/")[0]
