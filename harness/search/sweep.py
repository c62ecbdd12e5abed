"""The systematic phases: the default schedule, then every single deviation, plainest first.

Owns the order in which deviations are tried; must not know what they mean to a program.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from harness.model.choice import ChoiceKind
from harness.model.rung import Rung
from harness.search.learning import Watched
from harness.search.portfolio import Failure, Trial, first_failure
from harness.search.recording import Planned, Seen

# Which kind of single deviation is tried first; a hold of a storage operation before anything else.
_ORDER: dict[ChoiceKind, int] = {"fault": 1, "hold": 1, "arrival": 1, "lane": 1, "shape": 0, "order": 3}
_ORDER |= {"members": 3, "program": 2}
# What a second deviation costs where both are about how one storage operation ends: a fault that falls into it, with
# its await shape or with a hold of what it waits for.
_TOGETHER = 1
# What a fault at a moment costs for each run before its own: fewer runs are left to show what it did.
_PER_RUN = 4
# Costs below this are single deviations; those of storage operations and failures go before other phases,
# so many executions long.
_SINGLE = 22
# Deviations that change what the program does.
_OPENING: tuple[ChoiceKind, ...] = ("shape", "fault", "program")
_URGENT = 60


class Sweep:
    """Tries the default schedule, then every single deviation of it.

    A deviation that changes what the program does (a shape, a fault) opens choices of its own; single
    deviations are tried on top of it too.
    """

    name = "sweep"

    def __init__(self, *, rung: Rung, share: float = 0.5, skip: int = 0) -> None:
        """rung: the highest assumption. share: of the budget, the part that this phase may spend.

        skip: so many plans are left out, but for those that open choices: another part of the search has them.
        """
        self._skip = skip
        self._rung = rung
        self._share = share
        self._executions = 0
        self._urgent = 1  # how many interesting single deviations are in the queue
        # invariant: a heap by cost, then by age; a plan is there before it is executed. Then whether the plan is
        # interesting, and whether it opens choices.
        self._queue: list[tuple[int, int, tuple[tuple[int, int], ...], bool, bool]] = [(0, 0, (), True, True)]

    def look(self, trial: Trial) -> Failure | None:
        """Run the sweep; None when every deviation was tried or the share is spent."""
        return first_failure(trial, self.steps(trial), share=self._share)

    @property
    def claim(self) -> float:
        """The part of all executions that this phase asks for at the moment.

        All, while single deviations of storage operations and failures are left, and half when they are many.
        """
        if not self._urgent:
            return 0.0
        return 1.0 if self._executions < _URGENT else 0.5

    def steps(self, trial: Trial) -> Iterator[Failure | None]:
        """Run one execution per step; yield the failure of one that failed."""
        queue = self._queue
        order = 0
        # How many moments a run has is known only after it was seen: larger values than these do not exist.
        limits: dict[tuple[tuple[int, int], ...], int] = {}
        while queue:
            cost, _, plan, interesting, opens = heapq.heappop(queue)
            self._urgent -= interesting and cost < _SINGLE
            if plan and plan[-1][1] >= limits.get((*plan[:-1], (plan[-1][0], 0)), plan[-1][1] + 1):
                continue
            self._skip -= 1
            if self._skip >= 0 and not opens:
                continue
            scheduler = Planned(dict(plan))
            self._executions += 1
            watched = Watched(scheduler)
            execution = trial.run(scheduler if plan else watched, rung=self._rung)
            if not plan:
                trial.learn(watched)
            if not scheduler.fits:
                limits[(*plan[:-1], (plan[-1][0], 0))] = plan[-1][1]
            elif not execution.violations and _opens_choices(plan, scheduler.seen):
                kinds = {point.index: point.kind for point in scheduler.seen}
                for step, extension, interesting in _deviations(plan, scheduler.seen):
                    order += 1
                    opens = kinds[extension[-1][0]] in _OPENING
                    heapq.heappush(queue, (cost + step, order, extension, interesting, opens))
                    self._urgent += interesting and cost + step < _SINGLE
            failed = scheduler.fits and bool(execution.violations)
            yield Failure(dict(plan), "ranks", self._rung, minimal=len(plan) <= 1) if failed else None


def _opens_choices(plan: tuple[tuple[int, int], ...], seen: list[Seen]) -> bool:
    """Return whether deviations are tried on top of ``plan``: it is empty, or all shapes and faults."""
    kinds = {point.index: point.kind for point in seen}
    return len(plan) < 3 and all(kinds.get(index) in _OPENING for index, _ in plan)


def _deviations(
    plan: tuple[tuple[int, int], ...], seen: list[Seen]
) -> Iterable[tuple[int, tuple[tuple[int, int], ...], bool]]:
    """Yield each extension of ``plan`` by one later deviation, with its cost, and whether it is interesting."""
    after = plan[-1][0] if plan else -1
    runs = 0  # that began before the point
    struck = -1  # the run that the last deviation of the plan strikes in a storage operation
    shaped = False
    for point in seen:
        fate = point.weigh is not None
        runs += fate
        if point.index == after:
            shaped = point.kind == "shape" and len(plan) == 1
            struck = runs if point.weigh is not None and point.weigh(plan[-1][1]) == 0 and len(plan) == 1 else -1
        if point.index <= after:
            continue
        for value in range(1, point.options):
            extension = *plan, (point.index, value)
            if shaped and point.weigh is not None and point.weigh(value) == 0:
                yield _TOGETHER + _PER_RUN * (runs - 1), extension, True
            elif struck == runs and point.kind == "hold" and point.interesting:
                yield _TOGETHER + 3 * (value - 1), extension, True
            else:
                yield _cost(point, value) + (_PER_RUN * (runs - 1) if fate else 0), extension, point.interesting


def _cost(point: Seen, value: int) -> int:
    """Return the cost of one deviation by itself."""
    if point.kind == "shape":
        return 11 + value  # shapes are ordered plainest first
    cost = 10 + _ORDER[point.kind] + (0 if point.interesting else 4)
    if point.weigh is not None:
        return cost + point.weigh(value)
    return cost + ((value - 1) // 4 if point.kind == "fault" else 2 * (value - 1))
