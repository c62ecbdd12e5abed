"""A search in parts: each has its seed, its share of the budget and all that it learns for itself.

Owns the order of the parts and the result of the whole; must not know the phases, nor who looks where.

The first part that fails decides, and what later ones found is dropped: the result is the same whether parts are
searched one after another or at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness.model.errors import WorkerError
from harness.model.rung import Rung
from harness.runtime.clock import real_time
from harness.search.pool import Answers, Bench
from harness.search.portfolio import (
    Failure,
    Phase,
    Progress,
    Trial,
    check_passing,
    collected,
    confirm,
    look,
    result_of,
    shrunk,
)
from harness.search.result import SearchResult
from harness.search.target import Target


class Phases(Protocol):
    """How to make the phases of one part in any process: a plain value."""

    def make(self, rung: Rung) -> Sequence[Phase]:
        """Return new phases that go up to ``rung``."""
        ...


@dataclass(frozen=True, slots=True)
class Looked:
    """What a part came to. failure: the smallest. memory: what executions taught about the moments of runs."""

    executions: int
    found_after: int = 0
    found_by: str = ""
    failure: Failure | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A unit: some phases with a budget of executions."""

    phases: Phases
    budget: int

    def run(self, bench: Bench, /) -> Looked:
        """Look for a failure."""
        return look_in(Trial(bench.runner, budget=self.budget), self)


def look_in(trial: Trial, part: Part) -> Looked:
    """Search one part, as if nothing had been executed before."""
    session = trial.runner.session
    session.memory = {}
    found = look(trial, part.phases.make(trial.runner.target.rung))
    found_by = trial.phase
    failure = None if found is None else shrunk(trial, found)
    return Looked(trial.executions, trial.found_after, found_by, failure, dict(session.memory))


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Parts that others look at. numbers: of the parts, in their order."""

    answers: Answers
    numbers: Sequence[int]


def search_parts(
    target: Target,
    parts: Sequence[Part],
    *,
    first: Sequence[Phase] = (),
    elsewhere: Elsewhere | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Look for a violation of ``target`` in ``parts``; what is returned does not depend on ``elsewhere``.

    first: phases that come before the parts and outside their budgets.
    KeyboardInterrupt ends the search with ``interrupted`` set, and a WorkerError with ``broken``; both with what the
    parts have found so far.
    """
    began = real_time()
    with collected(), target.open() as runner:
        whole = Whole(Trial(runner, budget=sum(part.budget for part in parts), progress=progress), elsewhere)
        try:
            found = look(whole.trial, first) or whole.look(parts)
            counterexample = check_passing(whole.trial) if found is None else confirm(whole.trial, found)
        except KeyboardInterrupt:
            return replace(whole.what_is_known(began), interrupted=True)
        except WorkerError as error:
            return replace(whole.what_is_known(began), broken=str(error))
        finally:
            if elsewhere is not None:
                elsewhere.answers.drop(elsewhere.numbers)
        return result_of(whole.trial, counterexample, began=began)


class Whole:
    """The parts together; ``trial`` counts what all of them executed."""

    def __init__(self, trial: Trial, elsewhere: Elsewhere | None) -> None:
        self.trial = trial
        self._elsewhere = elsewhere

    def look(self, parts: Sequence[Part]) -> Failure | None:
        """Return the failure of the first part that has one."""
        for at, part in enumerate(parts):
            found = self._look_here(part) if self._elsewhere is None else self._look_elsewhere(at)
            if found is not None:
                return found
        return None

    def what_is_known(self, began: float) -> SearchResult:
        """Return the result of a search that ends before it is done. began: on the real clock."""
        trial, known = self.trial, self._known_failure()
        counterexample = None if known is None else confirm(trial, known)
        result = result_of(trial, counterexample, began=began)
        verdict = "unfinished" if counterexample is None else result.verdict
        return replace(result, verdict=verdict, failing=trial.first_failing)

    def _known_failure(self) -> Failure | None:
        """Return a failure that some part elsewhere has found and nobody has asked for yet."""
        if self._elsewhere is None:
            return None
        for looked in self._elsewhere.answers.done(self._elsewhere.numbers):
            if looked.failure is not None:
                return self._take(looked)
        return None

    def _look_here(self, part: Part) -> Failure | None:
        trial = self.trial
        before, tick = trial.executions, trial.progress
        progress = None if tick is None else lambda executions, phase: tick(before + executions, phase)
        inner = Trial(trial.runner, budget=part.budget, progress=progress)
        try:
            looked = look_in(inner, part)
        except KeyboardInterrupt:
            trial.executions += inner.executions
            trial.first_failing = inner.first_failing
            raise
        trial.first_failing = inner.first_failing
        return self._take(looked)

    def _look_elsewhere(self, at: int) -> Failure | None:
        elsewhere = self._elsewhere
        assert elsewhere is not None
        found = self._take(elsewhere.answers.wait(elsewhere.numbers[at]))
        if self.trial.progress is not None:
            self.trial.progress(self.trial.executions, f"part {at + 1} of {len(elsewhere.numbers)}")
        return found

    def _take(self, looked: Looked) -> Failure | None:
        """Count what a part executed; return its failure."""
        trial = self.trial
        if looked.failure is not None:
            trial.found_after = trial.executions + looked.found_after
            trial.runner.session.memory = dict(looked.memory)
        trial.phase = looked.found_by
        trial.executions += looked.executions
        return None if looked.failure is None else replace(looked.failure, minimal=True)
