"""A proof as text and as one JSON object: the certificate, the failing outcomes, or how much is explored.

Owns the wording and the keys; must not know how anything was searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.report.json import result_object, sleeps_concerned
from harness.search.certificate import Estimate, Proof
from harness.search.readable import schedule_text
from harness.search.result import Counterexample, SearchResult


def proof_object(proof: Proof, *, setup: Mapping[str, str]) -> dict[str, Any]:
    """Return the object of one proof: the keys of a search, and what the certificate states."""
    first = proof.outcomes[0] if proof.outcomes else None
    result = SearchResult(proof.verdict, proof.executions, proof.seconds, first, interrupted=proof.interrupted)
    check = proof.check
    return {
        **result_object(result, setup=setup, rung=proof.space.rung),
        "executions": proof.executions,
        "executions_total": proof.executions + (0 if check is None else 2 * check.sampled),
        "mode": proof.mode,
        "space": {
            "rung": proof.space.rung.label,
            "shapes": proof.space.shapes,
            "faults": proof.space.faults,
            "bound": proof.space.bound,
        },
        "complete": proof.exhausted,
        "ended": proof.complete,
        "states": proof.states,
        "schedules": proof.schedules,
        "completed_bound": proof.completed_bound,
        "reasons": list(proof.reasons),
        "assumptions": list(proof.assumptions),
        "unseen": list(proof.unseen),
        "check": None
        if check is None
        else {"pruned": check.pruned, "sampled": check.sampled, "difference": check.difference or None},
        "explored": None if proof.estimate is None else _estimate_object(proof.estimate),
        "outcomes": [_outcome_object(found) for found in proof.outcomes],
    }


def _estimate_object(estimate: Estimate) -> dict[str, Any]:
    return {
        "fraction": round(estimate.explored, 6),
        "low": round(estimate.low, 6),
        "high": round(estimate.high, 6),
        "schedules": round(estimate.schedules),
        "probes": estimate.probes,
    }


def _outcome_object(found: Counterexample) -> dict[str, Any]:
    return {
        "oracle": found.violation.oracle,
        "message": found.violation.message,
        "rung": found.rung.label,
        "schedule": found.execution.schedule.token(),
        "text": schedule_text(found.execution.schedule.decisions),
        "deviations": found.execution.schedule.deviations,
        "found_after": found.found_after,
        "sleeps": sleeps_concerned(found.execution.inversions),
        "replays": found.replays,
    }


def proof_report(proof: Proof, *, title: str, replay: str) -> str:
    """Return a proof for a person. replay: the command line without its token."""
    heads = {
        "proved": f"{title}: proved, every schedule keeps the promise",
        "violation": f"{title}: {len(proof.outcomes)} distinct failing outcome(s)",
        "unfinished": f"{title}: unfinished, nothing broken so far",
        "nondeterministic": f"{title}: not deterministic",
    }
    lines = [heads.get(proof.verdict, f"{title}: {proof.verdict}")]
    lines.append(f"  space: {_space(proof)}")
    counted = f"{proof.executions} executions stand for {_count(proof.schedules)} schedules"
    states = f", {proof.states} distinct states" if proof.states else ""
    lines.append(f"  {counted}{states}; mode {proof.mode}; {proof.seconds:.1f} s")
    if proof.check is not None and not proof.check.difference:
        pruned, sampled = proof.check.pruned, proof.check.sampled
        lines.append(f"  check: {sampled} of {pruned} pruned prefixes were executed to their end and went on alike")
    for found in proof.outcomes:
        lines += ["", *_outcome(found, replay)]
    if proof.reasons:
        lines += ["", "  not complete:", *(f"    {reason}" for reason in proof.reasons)]
        if proof.estimate is not None:
            lines.append(f"    {_explored(proof.estimate)}")
        if proof.completed_bound is not None:
            done = proof.completed_bound
            lines.append(f"    completed: all schedules of at most {done} deviation(s); next: --bound {done + 1}")
    elif proof.outcomes:
        lines += ["", "  the list is complete"]
    if proof.verdict == "proved":
        lines += ["  it rests on:", *(f"    {text}" for text in proof.assumptions)]
    return "\n".join(lines)


def _space(proof: Proof) -> str:
    space = proof.space
    shapes = "all await shapes" if space.shapes else "saves as they are"
    faults = "every fault that the program offers" if space.faults else "no faults"
    bound = "any number of deviations" if space.bound is None else f"at most {space.bound} deviations"
    return f"rung {space.rung.label}; {shapes}; {faults}; {bound}"


def _outcome(found: Counterexample, replay: str) -> list[str]:
    lines = found.violation.message.splitlines()[:6] or [""]
    first = f"  {found.violation.oracle} (rung {found.rung.label}): {lines[0]}"
    schedule = found.execution.schedule
    return [
        first,
        *(f"    {line.strip()}" for line in lines[1:]),
        *(f"    assumes that this sleep is work: {name}" for name in sleeps_concerned(found.execution.inversions)[:4]),
        f"    schedule: {schedule_text(schedule.decisions)}",
        f"    replay: {replay} {schedule.token()}",
        *([] if found.replays else [f"    NOT deterministic: {found.difference or 'it went another way'}"]),
    ]


def _explored(estimate: Estimate) -> str:
    low, high = 100 * estimate.low, 100 * estimate.high
    return (
        f"about {100 * estimate.explored:.2g} % explored (95 % interval: {low:.2g} to {high:.2g} %, of about "
        f"{_count(round(estimate.schedules))} schedules, by {estimate.probes} random probes)"
    )


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**7 else f"{float(number):.1e}"
