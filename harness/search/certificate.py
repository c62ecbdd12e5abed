"""What an exhaustive search returns: a certificate, the failing outcomes, or how much is explored.

Owns the statement and what it rests on; must not know how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.model.rung import Rung
from harness.search.result import Counterexample, Verdict

Mode = Literal["certain", "fingerprint"]

STANDING = (
    "what asyncio leaves open is what the loop decides: arrivals, timers, jobs, set order; on relaxed, the next turn",
    "sets of tasks iterate in one of the orders that the loop tries, not in every one",
    "source files are those that the program was imported from: they say where the order of a set of tasks matters",
    "who waits for something in a loop is let on some time: a schedule that comes back to an earlier state ends there",
    "an execution leaves nothing behind that changes a later one, as far as the states that were compared show",
    "no signal, thread or real I/O reaches the program",
)
READ = (
    "equal fingerprints go on alike: a fingerprint holds the live tasks with their locals and stacks, what is ready, "
    "parked and timed, all that they reach, the globals that the program's own code names, and the oracles' view of "
    "the journal, the files that the program writes by name, its folder and its environment",
    "ids are only compared for equality, clock readings only for order, tracebacks and log handlers are not read",
    "deadlines less than 0.1 ms apart are ordered as in the execution that was explored",
    "what installed packages and the standard library keep in globals and classes does not change what a program does",
)
DECLARED = ("every turn notes all state that it shares (harness.declared)",)


@dataclass(frozen=True, slots=True)
class Space:
    """What was searched. shapes, faults: whether the program offered such choices. bound: most deviations, or None."""

    rung: Rung
    shapes: bool
    faults: bool
    bound: int | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """How much of a space is explored, as fractions with a 95 % interval. schedules: about how many there are."""

    explored: float
    low: float
    high: float
    schedules: float
    probes: int


@dataclass(frozen=True, slots=True)
class Check:
    """The check of pruned prefixes: how many were pruned, how many executed to their end, and what differed first."""

    pruned: int
    sampled: int
    difference: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """How an exhaustive search ended.

    executions: all but those of the check and of counterexamples. complete: those that ran to their end. states:
    distinct ones, 0 in the mode ``certain``. schedules: that the explored part stands for. outcomes: one
    counterexample per distinct failing outcome. reasons: why it is not complete, or (). next_bound: the bound to
    try next, when a bound was completed. unseen: types whose state the fingerprint cannot read.
    """

    verdict: Verdict
    mode: Mode
    space: Space
    executions: int
    complete: int
    states: int
    schedules: int
    seconds: float
    outcomes: tuple[Counterexample, ...] = ()
    reasons: tuple[str, ...] = ()
    check: Check | None = None
    estimate: Estimate | None = None
    completed_bound: int | None = None
    unseen: tuple[str, ...] = ()
    declared: bool = False
    interrupted: bool = False

    @property
    def exhausted(self) -> bool:
        """Whether every schedule of the space was executed or pruned."""
        return not self.reasons

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the certificate rests on."""
        unread = "states with {} were taken as different: the fingerprint cannot look into it"
        sight = tuple(unread.format(name) for name in self.unseen)
        read = READ + sight if self.mode == "fingerprint" else ()
        return STANDING + read + (DECLARED if self.declared else ())
