"""Shrinking: the fewest deviations that still fail.

Owns the reduction of a plan; must not know which phase found it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.recording import HeldPlaces, Planned, Recorded

MAX_SINGLES = 300
# A schedule of hundreds of indices may take thousands of executions to reduce; it is left as it is by then.
MAX_EXECUTIONS = 2_000

if TYPE_CHECKING:
    from harness.search.portfolio import Trial


def shrink(
    trial: Trial, plan: Mapping[int, int], discipline: Discipline, rung: Rung
) -> tuple[dict[int, int], Discipline]:
    """Return a plan that fails, in which no single deviation can be left out or made plainer, and its discipline.

    Leaves out ever smaller blocks of deviations, as delta debugging does (Zeller and Hildebrandt, TSE
    2002), then lowers each value that is left.
    """
    if discipline == "indices" and (held := _held_places(trial, rung)) is not None:
        plan, discipline = held, "ranks"
    end = trial.executions + MAX_EXECUTIONS

    def fails(candidate: Mapping[int, int]) -> bool:
        if trial.executions >= end:
            return False
        execution = trial.run(Planned(candidate), discipline=discipline, rung=rung, beyond=True)
        return bool(execution.violations)

    current = dict(plan)
    if current and fails({}):
        return {}, discipline
    size = len(current)
    while size:
        positions = sorted(current)
        start = 0
        while start < len(positions):
            block = set(positions[start : start + size])
            candidate = {index: value for index, value in current.items() if index not in block}
            if candidate != current and fails(candidate):
                current = candidate
            start += size
        size = size // 2 if size > 1 or len(current) == len(positions) else 1
    for index in sorted(current):
        for value in range(1, current[index]):
            if fails({**current, index: value}):
                current[index] = value
                break
    single = _single(trial, rung) if len(current) > 1 else None
    return (current, discipline) if single is None else (single, "ranks")


def _held_places(trial: Trial, rung: Rung) -> dict[int, int] | None:
    """Return the holds of all tasks, or of single ones, at one or two places that fail, or None.

    They say in a few ranks what takes an index at each of hundreds of choice points.
    """
    kinds, places = list(trial.coverage.places), [*trial.coverage.places, *trial.coverage.lane_places]
    pairs = [*itertools.combinations(kinds, 2), *itertools.combinations(places, 2)]
    held = dict.fromkeys([*((place,) for place in places), *pairs])
    for candidate in itertools.islice(held, MAX_SINGLES):
        scheduler = Recorded(HeldPlaces(candidate))
        if trial.run(scheduler, rung=rung, beyond=True).violations:
            return scheduler.plan
    return None


def _single(trial: Trial, rung: Rung) -> dict[int, int] | None:
    """Return a single rank other than the default that fails, or None.

    Deviations can hide one another: leaving one out moves the choices after it. One hold often does what takes
    an index at each of many choice points.
    """
    recorder = Planned()
    trial.run(recorder, rung=rung, beyond=True)
    candidates = [(point.index, value) for point in recorder.seen for value in range(1, point.options)]
    for index, value in candidates[:MAX_SINGLES]:
        if trial.run(Planned({index: value}), rung=rung, beyond=True).violations:
            return {index: value}
    return None
