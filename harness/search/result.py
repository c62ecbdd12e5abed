"""What a search returns.

Owns the verdict as a value; must not know how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.model.explanation import Deciding, Explanation, Minimal
from harness.model.outcome import Execution, Violation
from harness.model.rung import Rung

Verdict = Literal["violation", "none-found", "proved", "unfinished", "nondeterministic"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest failing schedule found, executed twice with a trace.

    found_after: executions until the first failing one, that one included. replays: whether the second
    execution had the same trace. difference: the first turn that differs when it had not. text: the
    schedule in words, which can be executed where it is of the discipline ``ranks``. minimal: what is known of
    schedules with fewer deviations, or None. shrinking: executions that it took to shrink. explanation: why it fails,
    or None when nobody looked.
    """

    execution: Execution
    violation: Violation
    found_after: int
    found_by: str
    replays: bool
    difference: str = ""
    text: str = ""
    minimal: Minimal | None = None
    shrinking: int = 0
    explanation: Explanation | None = None

    @property
    def deciding(self) -> Deciding | None:
        """What separates failing from passing executions, or None."""
        return None if self.explanation is None else self.explanation.deciding

    @property
    def rung(self) -> Rung:
        """The least assumption that the schedule needs."""
        return self.execution.rung


def counterexample_of(execution: Execution) -> Counterexample:
    """Return a failing execution that was given, and not found by a search."""
    return Counterexample(execution, execution.violations[0], 0, "", replays=True)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How a search ended.

    executions: all of them, shrinking included. seconds: of real time. failing: what had failed when the
    search was interrupted before it was done with it. broken: why other processes could not finish it, or "".
    """

    verdict: Verdict
    executions: int
    seconds: float
    counterexample: Counterexample | None = None
    interrupted: bool = False
    failing: Execution | None = None
    broken: str = ""
