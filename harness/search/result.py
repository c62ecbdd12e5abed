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
class Moment:
    """Something that happens in an execution, with a name that means the same in others. where: its source line."""

    name: str
    where: str


@dataclass(frozen=True, slots=True)
class Deciding:
    """Fails when ``first`` comes before ``second``, passes when it comes after.

    failing, passing: how many executions, all different, support each half. An event that did not happen
    counts as later than one that did.
    """

    first: Moment
    second: Moment
    failing: int
    passing: int


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest failing schedule found, executed twice with a trace.

    found_after: executions until the first failing one, that one included. replays: whether the second
    execution had the same trace. difference: the first turn that differs when it had not. text: the
    schedule in words, which can be executed where it is of the discipline ``ranks``. deciding: the
    ordering that separates failing from passing executions; explained: whether one was looked for.
    """

    execution: Execution
    violation: Violation
    found_after: int
    found_by: str
    replays: bool
    difference: str = ""
    text: str = ""
    deciding: Deciding | None = None
    explained: bool = False

    @property
    def rung(self) -> Rung:
        """The least assumption that the schedule needs."""
        return self.execution.rung


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How a search ended.

    executions: all of them, shrinking included. seconds: of real time. failing: what had failed when the
    search was interrupted before it was done with it.
    """

    verdict: Verdict
    executions: int
    seconds: float
    counterexample: Counterexample | None = None
    interrupted: bool = False
    failing: Execution | None = None
