"""Proofs: an exhaustive search, the check of what it pruned, and what may be said afterwards.

Owns the verdict; must not know how states are compared. A limit never counts as a pass.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from harness.model.choice import ChoicePoint, option_label
from harness.model.errors import UsageError, WorkerError
from harness.model.outcome import Violation, first_difference
from harness.model.rung import Rung
from harness.runtime.clock import real_time
from harness.search.ahead import Ahead
from harness.search.certificate import Check, Mode, Proof, Space
from harness.search.estimate import estimate
from harness.search.exhaustive import Exploration, Failing, Progress
from harness.search.outcomes import outcome_of, quiet_ends, without_turns
from harness.search.pool import Shared
from harness.search.portfolio import collected
from harness.search.recording import Planned
from harness.search.result import Counterexample
from harness.search.states import Plan, count_schedules, values_of
from harness.search.target import Runner, Target
from harness.search.traces import Traces

# Of the pruned prefixes, at most so many are executed to their end to check the fingerprint.
MAX_SAMPLE = 40
MAX_OUTCOMES = 20
MIN_PROBES, MAX_PROBES = 30, 200
# The estimate may take this part of the time that the search took.
PROBE_SHARE = 0.25


def prove(
    target: Target,
    *,
    mode: Mode = "fingerprint",
    bound: int | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    to_first: bool = False,
    progress: Progress | None = None,
    shared: Shared | None = None,
) -> Proof:
    """Execute every schedule of ``target`` up to its rung, or as many as ``budget`` or ``seconds`` allow.

    shared: processes that take part in the search; what is returned does not depend on them.
    to_first: stop at the first failing outcome. bound: the most deviations of a schedule; a completed bound is no
    proof unless nothing lies beyond it.
    Returns ``proved`` with all that the certificate states, ``violation`` with every distinct failing outcome that
    was met, ``unfinished`` when anything was left out, ``nondeterministic`` when a prefix did not replay.
    """
    if target.allow_real_io:
        raise UsageError("a program that does real I/O cannot be proved")
    began = real_time()
    until_s = began + (seconds if seconds is not None else float("inf"))
    interrupted, broken = False, ""
    with collected(), target.open() as runner, quiet_ends():
        exploration = _exploration(runner, mode=mode, bound=bound, to_first=to_first)
        ahead = None if shared is None else Ahead(shared.pool, shared.recipe, exploration.way)
        try:
            exploration.run(runner, budget=budget, until_s=until_s, progress=progress, ahead=ahead)
        except KeyboardInterrupt:
            interrupted = True
        except WorkerError as error:
            broken = str(error)
        if shared is not None:
            shared.pool.forget()
        took_s = real_time() - began
        source = random.Random(seed)
        outcomes = tuple(
            confirm(runner, exploration, failing) for failing in list(exploration.failing.values())[:MAX_OUTCOMES]
        )
        check = None if interrupted or mode == "certain" else _check(runner, exploration, source)
        reasons = (*_reasons(exploration, check, interrupted), *((broken,) if broken else ()))
        estimated = None
        if exploration.pending and not interrupted and not to_first:
            estimated = _estimate(runner, exploration, source, allowance_s=max(1.0, took_s * PROBE_SHARE))
    return Proof(
        verdict=_verdict(exploration, outcomes, reasons),
        mode=mode,
        space=Space(exploration.way.rung, "shape" in exploration.kinds, "fault" in exploration.kinds, bound),
        executions=exploration.executions,
        complete=exploration.complete,
        states=exploration.states,
        schedules=count_schedules(exploration.root) or exploration.complete,
        seconds=real_time() - began,
        outcomes=outcomes,
        reasons=reasons,
        check=check,
        estimate=estimated,
        completed_bound=completed_bound(exploration),
        unseen=tuple(sorted(exploration.unseen)),
        declared=isinstance(exploration, Traces),
        interrupted=interrupted,
    )


def _exploration(runner: Runner, *, mode: Mode, bound: int | None, to_first: bool) -> Exploration:
    """Return the search that fits: by traces for a program that declares its accesses, when nothing is assumed."""
    target = runner.target
    if mode == "certain" and target.rung is Rung.RELAXED and bound is None:
        trial = Traces(target, mode=mode)
        trial.run(runner, budget=1, until_s=float("inf"))
        if trial.declares:
            return Traces(target, mode=mode, to_first=to_first)
    return Exploration(target, mode=mode, bound=bound, to_first=to_first)


def _reasons(exploration: Exploration, check: Check | None, interrupted: bool) -> tuple[str, ...]:
    """Return everything for which the search is not complete."""
    reasons = sorted(exploration.limits)
    if interrupted:
        reasons.append("it was interrupted")
    if exploration.diverged:
        reasons.append(f"a prefix did not replay: {exploration.diverged}")
    elif exploration.pending:
        reasons.append(f"{len(exploration.pending)} known options were not tried when the budget ended")
    if exploration.beyond:
        reasons.append(f"{exploration.beyond} options lie beyond the bound of {exploration.bound} deviations")
    if check is not None and check.difference:
        reasons.append(f"states with one fingerprint went on differently: {check.difference}")
    return tuple(reasons)


def _verdict(exploration: Exploration, outcomes: tuple[Counterexample, ...], reasons: tuple[str, ...]) -> Any:
    if exploration.diverged or any(not found.replays for found in outcomes):
        return "nondeterministic"
    if outcomes:
        return "violation"
    return "unfinished" if reasons else "proved"


def completed_bound(exploration: Exploration) -> int | None:
    """Return the number of deviations up to which everything was tried, or None when all was or nothing was."""
    if exploration.diverged or exploration.limits:
        return None
    bound = exploration.bound if exploration.beyond else None
    if exploration.pending:
        lowest = min(item.deviations for item in exploration.pending)
        bound = lowest - 1 if lowest else None
    # What leads on from such a state was counted with the deviations of the longer way to it.
    return bound if bound is None or exploration.shorter is None else min(bound, exploration.shorter)


def confirm(runner: Runner, exploration: Exploration, failing: Failing) -> Counterexample:
    """Execute a failing plan twice with a trace and compare."""
    first, second = (
        runner.run(
            Planned(values_of(failing.plan)),
            tracing=True,
            discipline=exploration.way.discipline,
            rung=exploration.way.rung,
        )
        for _ in range(2)
    )
    difference = first_difference(first.trace, second.trace)
    matching = [item for item in first.violations if without_turns(item.message) == failing.message]
    vanished = Violation("determinism", "a failing schedule passed when it was executed again", first.turns)
    violation = (*matching, *first.violations, vanished)[0]
    return Counterexample(
        execution=first,
        violation=violation,
        found_after=failing.found_after,
        found_by=f"{exploration.way.mode} search",
        replays=difference is None and bool(matching),
        difference="" if difference is None else f"{difference[0]} | {difference[1]}",
    )


class Onward:
    """Follows a plan; after it, the options that were chosen elsewhere, by name, or random ones."""

    def __init__(self, plan: Plan, *, source: random.Random, chosen: list[str] | None = None) -> None:
        self._plan: Mapping[int, int] = {index: step.value for index, step in enumerate(plan)}
        self._length = len(plan)
        self._source = source
        self._follow = chosen
        self.chosen: list[str] = []
        self.options: list[tuple[str, int]] = []
        self.weight = 1.0

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the planned value, the option of the same name, or any."""
        options = len(point.enabled)
        if point.index < self._length:
            return min(self._plan[point.index], options - 1)
        place = len(self.options)
        self.options.append((point.kind, options))
        self.weight *= options
        value = self._source.randrange(options)
        labels = [option_label(point, index) for index in range(options)]
        if self._follow is not None and place < len(self._follow) and self._follow[place] in labels:
            value = labels.index(self._follow[place])
        self.chosen.append(labels[value])
        return value


def _check(runner: Runner, exploration: Exploration, source: random.Random) -> Check:
    """Execute a sample of pruned prefixes to their end, beside the prefix that first led to the same state."""
    pruned = exploration.pruned
    sample = source.sample(pruned, min(MAX_SAMPLE, len(pruned)))
    for done, (plan, node) in enumerate(sample):
        seed = source.getrandbits(32)
        explored = Onward(node.plan, source=random.Random(seed))
        skipped = Onward(plan, source=random.Random(seed), chosen=explored.chosen)
        ends = []
        for scheduler in (explored, skipped):
            execution = runner.run(scheduler, discipline=exploration.way.discipline, rung=exploration.way.rung)
            ends.append((execution.ending.kind, outcome_of(execution), scheduler.options))
        if ends[0] != ends[1]:
            return Check(len(pruned), done + 1, f"{_told(ends[0])} | {_told(ends[1])} after {values_of(plan)}")
    return Check(len(pruned), len(sample))


def _told(end: tuple[str, Any, list[tuple[str, int]]]) -> str:
    kind, found, options = end
    return f"{kind}, {len(options)} more choices, {found[0][1] if found else 'nothing broken'}"


def _estimate(runner: Runner, exploration: Exploration, source: random.Random, *, allowance_s: float) -> Any:
    until_s = real_time() + allowance_s
    exploration.expect_orders()

    def probe(plan: Plan) -> float:
        scheduler = Onward(plan, source=source)
        runner.run(scheduler, discipline=exploration.way.discipline, rung=exploration.way.rung)
        return scheduler.weight

    def enough(probes: int) -> bool:
        return probes >= MAX_PROBES or (probes >= MIN_PROBES and real_time() > until_s)

    return estimate(exploration.root, probe, source=source, until=enough)
