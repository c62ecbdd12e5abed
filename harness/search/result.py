"""What a search returns.

Owns the verdict as a value; must not know how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.model.outcome import Execution, Violation
from harness.model.rung import Rung

Verdict = Literal["violation", "none-found", "proved", "unfinished", "nondeterministic"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest failing schedule found, executed twice with a trace.

    found_after: executions until the first failing one, that one included. replays: whether the second
    execution had the same trace. difference: the first turn that differs when it had not.
    """

    execution: Execution
    violation: Violation
    found_after: int
    found_by: str
    replays: bool
    difference: str = ""

    @property
    def rung(self) -> Rung:
        """The least assumption that the schedule needs."""
        return self.execution.rung


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How a search ended. executions: all of them, shrinking included. seconds: of real time."""

    verdict: Verdict
    executions: int
    seconds: float
    counterexample: Counterexample | None = None
    interrupted: bool = False
