"""A search result as one JSON object.

Owns the keys that other tools rely on; must not know the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness.model.explanation import Deciding, Explanation, Timeline
from harness.model.rung import Rung
from harness.search.readable import schedule_text
from harness.search.result import Counterexample, SearchResult


def result_object(
    result: SearchResult, *, setup: Mapping[str, str], rung: Rung, without: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the object of one search.

    ``rung`` is the least assumption of the counterexample, or, without one, the rung that was searched.
    ``executions`` counts up to the first failing one; ``executions_total`` adds shrinking and checks. ``deciding`` is
    null where nothing decides, and else names, two for each ordering: of each two the first comes before the second,
    and an execution fails when that is so of all; ``orderings`` has the same as pairs.
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
        "deciding": None if found is None or found.deciding is None else list(found.deciding.names),
        "orderings": [] if found is None or found.deciding is None else _orderings(found.deciding),
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


def _orderings(deciding: Deciding) -> list[list[str]]:
    return [[ordering.first.name, ordering.second.name] for ordering in deciding.orderings]


def explanation_object(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as one object, with the failing and the nearest passing execution in full.

    ``deciding`` and ``orderings`` are as in ``result_object``; ``places`` has the source lines of ``orderings``.
    """
    deciding, minimal = explanation.deciding, explanation.minimal
    return {
        "title": explanation.title,
        "setup": dict(explanation.setup),
        "rung": explanation.rung.label,
        "oracle": explanation.violation.oracle,
        "promise": explanation.promise,
        "message": explanation.violation.message,
        "schedule": explanation.schedule.token(),
        "text": explanation.failing.text,
        "deviations": explanation.deviations,
        "sleeps": list(explanation.sleeps),
        "executions": explanation.executions,
        "deciding": None if deciding is None else list(deciding.names),
        "orderings": [] if deciding is None else _orderings(deciding),
        "places": [] if deciding is None else [[item.first.where, item.second.where] for item in deciding.orderings],
        "supporting": None if deciding is None else {"failing": deciding.failing, "passing": deciding.passing},
        "aimed": 0 if deciding is None else deciding.aimed,
        "alike": deciding is not None and deciding.alike,
        "unexplained": explanation.unexplained or None,
        "minimal": None if minimal is None else asdict(minimal),
        "without": dict(explanation.without),
        "failing": timeline_object(explanation.failing),
        "passing": None if explanation.passing is None else timeline_object(explanation.passing),
        "changes": list(explanation.changes),
    }


def timeline_object(timeline: Timeline) -> dict[str, Any]:
    """Return a timeline as one object. Numbers of rows, lanes and ops count from 0; -1 is none."""
    return {
        "schedule": timeline.schedule.token(),
        "text": timeline.text,
        "rung": timeline.rung.label,
        "ending": str(timeline.ending),
        "fails": timeline.fails,
        "broken": timeline.broken,
        "deciding": [list(pair) for pair in timeline.deciding],
        "deviations": list(timeline.deviations),
        "lanes": [asdict(lane) for lane in timeline.lanes],
        "rows": [asdict(row) for row in timeline.rows],
        "ops": [asdict(op) for op in timeline.ops],
        "wake_ups": [asdict(item) for item in timeline.wake_ups],
    }


def sleeps_concerned(inversions: tuple[tuple[str, str], ...]) -> list[str]:
    """Return each sleep that completed against its deadline, or was overtaken, once."""
    return list(dict.fromkeys(name for pair in inversions for name in pair))
