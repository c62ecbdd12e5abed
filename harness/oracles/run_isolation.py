"""run_isolation: a run knows nothing of another.

Owns this one promise; must not know what an instance keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import Run, lineage, runs_of, saves_checkpoint

NEEDS = ("reference",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: nothing of a failed, cancelled or abandoned run shows in the next one.

    Two things show it. A run that began with a message on an instance that was used before, and that
    returned, has the outputs that the same message has on an instance of its own (in any order). And a
    run that resumes another begins from a checkpoint which that one, or a run that it continues, saved.
    """
    runs = runs_of(journal)
    savers = {event.data["checkpoint"]: event for event in journal if saves_checkpoint(event)}
    for run in runs.values():
        own = savers.get(run.checkpoint)
        if own is None or run.resumes is None or own.run in lineage(runs, run.resumes):
            continue
        return Violation(
            "run_isolation",
            f"run {run.number} resumes run {run.resumes} from {own.subject}, which run {own.run} saved",
            journal[run.begun].turn,
        )
    references = {(event.subject, event.data["message"]): event for event in journal if event.kind == "run.reference"}
    for run in runs.values():
        reference = references.get((run.name, run.data.get("message", "")))
        if reference is None or run.ended is None or not _comparable(runs, run, reference):
            continue
        expected, got = sorted(reference.data["values"]), sorted(run.end.get("values", ()))
        if expected != got:
            return Violation(
                "run_isolation",
                f"run {run.number} on a used instance returned {_listed(got)}; on an instance of its own the same "
                f"message returns {_listed(expected)}",
                journal[run.ended].turn,
            )
    return None


def _comparable(runs: dict[int, Run], run: Run, reference: Event) -> bool:
    """Return whether ``run`` began with a message on a used instance, and went to its end as the reference did."""
    used = any(
        other.begun < run.begun and other.data.get("instance") == run.data.get("instance") for other in runs.values()
    )
    plain = run.checkpoint is None and run.how == "returned"
    return used and plain and reference.data["error"] is None and not reference.data["requests"]


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or "nothing"


PLUGIN = judge
