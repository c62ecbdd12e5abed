"""The search itself: phases in order, until one finds a violation or the budget is spent.

Owns the budget, the check that a counterexample replays, and the verdict; must not know the phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from harness.model.choice import Scheduler
from harness.model.history import History
from harness.model.outcome import Execution, Violation
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.runtime.clock import real_time
from harness.runtime.leftovers import collect
from harness.search.determinism import execute_twice, uncontrolled
from harness.search.holding import Gaps
from harness.search.learning import Coverage, Watched
from harness.search.readable import in_readable_form
from harness.search.recording import Labelled, Planned
from harness.search.result import Counterexample, SearchResult, Verdict
from harness.search.shrink import Shrunk, check_below, shrink
from harness.search.target import Runner, Target

Progress = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing schedule as a phase found it. plan: position to value; other choices are 0.

    minimal: it was shrunk, or need not be. shrinking: the executions that this took.
    """

    plan: Mapping[int, int]
    discipline: Discipline
    rung: Rung
    minimal: bool = False
    shrinking: int = 0


class BudgetSpent(Exception):
    """Raised inside a phase when no execution is left; caught by the search."""


class Trial:
    """What a phase runs executions with: counts them and stops at the budget."""

    def __init__(self, runner: Runner, *, budget: int, progress: Progress | None = None) -> None:
        self.runner = runner
        self.budget = budget
        self.executions = 0
        self.found_after = 0
        self.first_failing: Execution | None = None
        self.phase = ""
        self.history = History()
        self.coverage = Coverage()
        self.gaps = Gaps()
        # Plans of ranks that passed; which fewer deviations pass is then known without executing them again.
        self.passed: dict[tuple[tuple[int, int], ...], None] = {}
        self.progress = progress

    @property
    def left(self) -> int:
        """Executions until the budget is spent."""
        return self.budget - self.executions

    def run(
        self, scheduler: Scheduler, *, discipline: Discipline = "ranks", rung: Rung | None = None, beyond: bool = False
    ) -> Execution:
        """Execute once; raises BudgetSpent when nothing is left, unless ``beyond`` (shrinking) is set."""
        if not beyond and self.left <= 0:
            raise BudgetSpent
        execution = self.runner.run(scheduler, discipline=discipline, rung=rung)
        self.executions += 1
        if isinstance(scheduler, Planned) and discipline == "ranks" and scheduler.fits and not execution.violations:
            self.passed[tuple(sorted(scheduler.plan.items()))] = None
        if execution.violations and not self.found_after:
            self.found_after = self.executions
            self.first_failing = execution
        if self.progress is not None:
            self.progress(self.executions, self.phase)
        return execution

    def learn(self, watched: Watched) -> int:
        """Add a watched execution to what is known; return how many pairs of places are new."""
        self.history.learn(watched.steps, points=watched.points)
        self.gaps.add(watched.steps)
        return self.coverage.add(watched.steps)


class Phase(Protocol):
    """One way of looking for a violation."""

    name: str

    def look(self, trial: Trial) -> Failure | None:
        """Run executions until one fails; None when this phase has nothing left to try."""
        ...


def first_failure(trial: Trial, steps: Iterator[Failure | None], *, share: float) -> Failure | None:
    """Return the first failure of ``steps``; None when they end, or when this share of the budget is spent."""
    allowance = trial.executions + max(1, int(trial.left * share))
    while trial.executions < allowance:
        try:
            found = next(steps)
        except StopIteration:
            return None
        if found is not None:
            return found
    return None


def search(
    target: Target,
    *,
    phases: Sequence[Phase],
    budget: int,
    progress: Progress | None = None,
) -> SearchResult:
    """Look for a violation of ``target`` in at most ``budget`` executions; shrinking comes on top.

    progress: called after each execution with their number and the phase.
    KeyboardInterrupt ends the search with ``interrupted`` set; nothing is left running.
    """
    began = real_time()
    with collected(), target.open() as runner:
        trial = Trial(runner, budget=budget, progress=progress)
        try:
            found = look(trial, phases)
            counterexample = check_passing(trial) if found is None else confirm(trial, found)
        except KeyboardInterrupt:
            return SearchResult(
                "unfinished", trial.executions, real_time() - began, interrupted=True, failing=trial.first_failing
            )
    return result_of(trial, counterexample, began=began)


def result_of(trial: Trial, counterexample: Counterexample | None, *, began: float) -> SearchResult:
    """Return how a search ended that was not interrupted. began: on the real clock."""
    seconds = real_time() - began
    if counterexample is None:
        return SearchResult("none-found", trial.executions, seconds)
    verdict: Verdict = "violation" if counterexample.replays else "nondeterministic"
    return SearchResult(verdict, trial.executions, seconds, counterexample)


@contextmanager
def collected() -> Iterator[None]:
    """Collect what the executions left before the caller goes on."""
    try:
        yield
    finally:
        collect()


def look(trial: Trial, phases: Sequence[Phase]) -> Failure | None:
    """Return the first failure of ``phases``, or None when they have ended or the budget is spent."""
    for phase in phases:
        trial.phase = phase.name
        try:
            found = phase.look(trial)
        except BudgetSpent:
            return None
        if found is not None:
            return found
    return None


def shrunk(trial: Trial, failure: Failure) -> Failure:
    """Return the smallest failure that shrinking finds; one whose executions block as it is."""
    failing = trial.first_failing
    if failure.minimal or (failing is not None and failing.ending.kind == "stalled"):
        return failure
    trial.phase = "shrinking"
    least = shrink(trial, failure.plan, failure.discipline, failure.rung)
    return Failure(least.plan, least.discipline, failure.rung, minimal=True, shrinking=least.executions)


def confirm(trial: Trial, failure: Failure) -> Counterexample:
    """Shrink ``failure``, then execute it twice with a trace and compare."""
    phase = trial.phase
    failing = trial.first_failing
    if failing is not None and failing.ending.kind == "stalled":
        # Each execution blocks for a second or more of real time: once is enough to report it.
        return Counterexample(failing, failing.violations[0], trial.found_after, phase, replays=True)
    failure = shrunk(trial, failure)
    trial.phase = "shrinking"
    least, minimal = check_below(trial, Shrunk(dict(failure.plan), failure.discipline, failure.shrinking), failure.rung)
    plan, discipline = least.plan, least.discipline
    labels = Labelled(plan)
    first, second, difference = execute_twice(
        trial.runner, plan, discipline=discipline, rung=failure.rung, recorder=labels
    )
    trial.executions += 2
    stable = not difference and bool(first.violations)
    violation = (first.violations or second.violations or (_vanished(first),))[0]
    return Counterexample(
        execution=first,
        violation=violation,
        found_after=trial.found_after,
        found_by=phase,
        replays=stable,
        difference=difference,
        text=in_readable_form(first.schedule.decisions, labels.names) if discipline == "ranks" else "",
        minimal=minimal,
        shrinking=least.executions,
    )


def check_passing(trial: Trial) -> Counterexample | None:
    """Execute the default schedule of a program that passes twice; None when both executions are the same.

    They look for nothing and are not counted: a search that finds nothing has executed its budget.
    """
    if trial.found_after or not trial.executions:
        return None
    first, _, difference = execute_twice(trial.runner)
    if not difference:
        return None
    return Counterexample(
        execution=first,
        violation=uncontrolled(first, difference),
        found_after=trial.executions,
        found_by="determinism",
        replays=False,
        difference=difference,
    )


def _vanished(execution: Execution) -> Violation:
    """Return the violation to report when a failing schedule passed when it was executed again."""
    return Violation("determinism", "a failing schedule passed when it was executed again", execution.turns)
