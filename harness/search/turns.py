"""Phases in turns: a few executions of one, a few of the next, within one share of the budget.

Owns whose turn it is; must not know what a phase does with its turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from harness.search.portfolio import Failure, Trial, first_failure


class Stepping(Protocol):
    """A phase that can stop after each execution."""

    name: str

    def steps(self, trial: Trial) -> Iterator[Failure | None]:
        """Run one execution per step; yield the failure of one that failed. Ends when nothing is left to try."""
        ...


class Claiming(Stepping, Protocol):
    """A phase that says how many of the executions it asks for, from 0 to 1, at the moment."""

    @property
    def claim(self) -> float:
        """1 goes before everything else."""
        ...


class InTurns:
    """Runs phases in turns, one execution each.

    first: begins, and has what it claims besides its own turns. order: whose turn it is, over and over; a phase
    may come up several times.
    """

    name = "in turns"

    def __init__(self, first: Claiming, order: Sequence[Stepping], *, share: float = 0.5) -> None:
        self._first = first
        self._order = order
        self._share = share
        self._steps: Iterator[Failure | None] | None = None

    def look(self, trial: Trial) -> Failure | None:
        """Run until an execution fails, the share is spent or every phase has ended; then go on, to the end."""
        if self._steps is None:
            self._steps = self.steps(trial)
            return first_failure(trial, self._steps, share=self._share)
        return first_failure(trial, self._steps, share=1.0)

    def steps(self, trial: Trial) -> Iterator[Failure | None]:
        """Run one execution per step."""
        running = {phase.name: phase.steps(trial) for phase in (self._first, *self._order)}
        credit = 0.0
        while running:
            for phase in self._order:
                while self._first.name in running:
                    credit = min(credit + self._first.claim, 2.0)
                    if credit < 1:
                        break
                    credit -= 1
                    yield from _one_step(trial, self._first, running)
                yield from _one_step(trial, phase, running)


def _one_step(trial: Trial, phase: Stepping, running: dict[str, Iterator[Failure | None]]) -> Iterator[Failure | None]:
    """Run one execution of ``phase``, or none when it has ended."""
    if phase.name not in running:
        return
    trial.phase = phase.name
    try:
        found = next(running[phase.name])
    except StopIteration:
        del running[phase.name]
        return
    yield found
