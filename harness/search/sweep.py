"""The systematic phases: the default schedule, then every single deviation, plainest first.

Owns the order in which deviations are tried; must not know what they mean to a program.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from harness.model.choice import ChoiceKind
from harness.model.rung import Rung
from harness.search.portfolio import Failure, Trial
from harness.search.recording import Planned, Seen

# Which kind of single deviation is tried first; a hold of a storage operation before anything else.
_ORDER: dict[ChoiceKind, int] = {"fault": 1, "hold": 1, "arrival": 1, "lane": 1, "shape": 0, "order": 3, "program": 2}


class Sweep:
    """Tries the default schedule, then every single deviation of it.

    A deviation that changes what the program does (a shape, a fault) opens choices of its own; single
    deviations are tried on top of it too.
    """

    name = "sweep"

    def __init__(self, *, rung: Rung, share: float = 0.5) -> None:
        """rung: the highest assumption. share: of the budget, the part that this phase may spend."""
        self._rung = rung
        self._share = share

    def look(self, trial: Trial) -> Failure | None:
        """Run the sweep; None when every deviation was tried or the share is spent."""
        allowance = trial.executions + max(1, int(trial.left * self._share))
        queue: list[tuple[int, int, tuple[tuple[int, int], ...]]] = [(0, 0, ())]
        order = 0
        # How many moments a run has is known only after it was seen: larger values than these do not exist.
        limits: dict[tuple[tuple[int, int], ...], int] = {}
        while queue and trial.executions < allowance:
            cost, _, plan = heapq.heappop(queue)
            if plan and plan[-1][1] >= limits.get((*plan[:-1], (plan[-1][0], 0)), plan[-1][1] + 1):
                continue
            scheduler = Planned(dict(plan))
            execution = trial.run(scheduler, rung=self._rung)
            if not scheduler.fits:
                limits[(*plan[:-1], (plan[-1][0], 0))] = plan[-1][1]
                continue
            if execution.violations:
                return Failure(dict(plan), "ranks", self._rung, minimal=len(plan) <= 1)
            if not _opens_choices(plan, scheduler.seen):
                continue
            for step, extension in _deviations(plan, scheduler.seen):
                order += 1
                heapq.heappush(queue, (cost + step, order, extension))
        return None


def _opens_choices(plan: tuple[tuple[int, int], ...], seen: list[Seen]) -> bool:
    """Return whether deviations are tried on top of ``plan``: it is empty, or all shapes and faults."""
    kinds = {point.index: point.kind for point in seen}
    return len(plan) < 3 and all(kinds.get(index) in ("shape", "fault", "program") for index, _ in plan)


def _deviations(
    plan: tuple[tuple[int, int], ...], seen: list[Seen]
) -> Iterable[tuple[int, tuple[tuple[int, int], ...]]]:
    """Yield each extension of ``plan`` by one later deviation, with its cost; lower costs are tried first."""
    after = plan[-1][0] if plan else -1
    for point in seen:
        if point.index <= after:
            continue
        for value in range(1, point.options):
            cost = 10 + _ORDER[point.kind] + (0 if point.interesting else 4)
            # the moments of a fault are alike; later values of other choices are further off
            cost += (value - 1) // 4 if point.kind == "fault" else 2 * (value - 1)
            if point.kind == "shape":
                cost = 11 + value  # shapes are ordered plainest first
            yield cost, (*plan, (point.index, value))
