"""A search result as one JSON object.

Owns the keys that other tools rely on; must not know the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.explanation import Deciding
from harness.model.rung import Rung
from harness.search.result import Counterexample, SearchResult


def result_object(
    result: SearchResult, *, setup: Mapping[str, str], rung: Rung, without: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the object of one search.

    ``rung`` is the least assumption of the counterexample, or, without one, the rung that was searched.
    ``executions`` counts up to the first failing one; ``executions_total`` adds shrinking and checks.
    """
    found = result.counterexample
    schedule = None if found is None else found.execution.schedule
    return {
        "scenario": setup.get("scenario", ""),
        "storage": setup.get("storage", ""),
        "fix": setup.get("fix") or None,
        "shapes": setup.get("shapes", "off") == "on",
        "verdict": result.verdict,
        "rung": (rung if found is None else found.rung).label,
        "executions": result.executions if found is None else found.found_after,
        "executions_total": result.executions,
        "seconds": round(result.seconds, 3),
        "schedule": None if schedule is None else schedule.token(),
        "text": None if found is None else text_of(found),
        "oracle": None if found is None else found.violation.oracle,
        "message": None if found is None else found.violation.message,
        "deciding": None if found is None or found.deciding is None else _pair(found.deciding),
        "deviations": None if schedule is None else schedule.deviations,
        "found_by": None if found is None else found.found_by,
        "sleeps": [] if found is None else sleeps_concerned(found.execution.inversions),
        "difference": None if found is None else found.difference or None,
        "interrupted": result.interrupted,
        "without": dict(without or {}),
    }


def text_of(found: Counterexample) -> str:
    """Return the schedule of ``found`` in words; they can be replayed where its discipline is ``ranks``."""
    return found.text or schedule_text(found.execution.schedule.decisions)


def _pair(deciding: Deciding) -> list[str] | None:
    if len(deciding.orderings) > 1:
        return None
    return [deciding.orderings[0].first.name, deciding.orderings[0].second.name]


def schedule_text(decisions: tuple[Any, ...]) -> str:
    """Return the deviations of a schedule in words, one per clause; "default order" when there is none."""
    clauses = []
    for decision in decisions:
        subject, _, option = decision.option.rpartition(": ")
        subject = subject or decision.label
        if decision.kind == "hold":
            clauses.append(f"{'let in early' if option == 'early' else 'hold'} {subject}")
        elif decision.kind == "shape":
            clauses.append(f"{subject} waits {option}")
        elif decision.kind == "fault":
            clauses.append(f"{subject} {option}")
        elif decision.kind == "order":
            clauses.append(f"sets of tasks in order {option}")
        elif decision.kind == "members":
            clauses.append(f"{option} in that order")
        else:
            clauses.append(f"{option or decision.label} first (choice {decision.index})")
    return "; ".join(clauses) or "default order"


def sleeps_concerned(inversions: tuple[tuple[str, str], ...]) -> list[str]:
    """Return each sleep that completed against its deadline, or was overtaken, once."""
    return list(dict.fromkeys(name for pair in inversions for name in pair))
