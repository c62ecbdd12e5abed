"""restore_complete: a checkpoint holds all that is left to do.

Owns this one promise; must not know what a checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import Run, lineage, runs_of, saves_checkpoint

NEEDS = ("reference",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: resuming any checkpoint of a failure-free run ends with the same outputs.

    A run that resumes and goes to its end has the outputs that its message has on an instance of its own
    (in any order), together with what was put out before the checkpoint was saved. Not judged are runs with
    an error that a save was made to raise, runs that ask a human, and a reference that failed.
    """
    runs = runs_of(journal)
    references = {(event.subject, event.data["message"]): event for event in journal if event.kind == "run.reference"}
    asked = {event.run for event in journal if event.kind == "run.request"}
    disturbed = {event.run for event in journal if event.kind == "save.raised"}
    for run in runs.values():
        reference = references.get((run.name, run.data.get("message", "")))
        if run.checkpoint is None or run.how not in ("returned", "failed") or run.ended is None or reference is None:
            continue
        if reference.data["error"] or reference.data["requests"] or asked & set(lineage(runs, run.number)):
            continue
        turn = journal[run.ended].turn
        if run.how == "failed":
            if run.number in disturbed:
                continue
            return Violation("restore_complete", f"run {run.number} failed on resume: {run.end['error']}", turn)
        got = sorted([*put_out_before(journal, runs, run), *run.end.get("values", ())])
        expected = sorted(reference.data["values"])
        if got != expected:
            return Violation(
                "restore_complete",
                f"run {run.number}, resumed from a checkpoint, ended with {', '.join(got) or 'nothing'}; without a "
                f"resume the same message ends with {', '.join(expected) or 'nothing'}",
                turn,
            )
    return None


def put_out_before(journal: Sequence[Event], runs: dict[int, Run], run: Run) -> list[str]:
    """Return what was put out before the checkpoint that ``run`` began from was saved.

    Only graph workflows put anything out before they end; a functional one returns its output anew.
    """
    found: list[str] = []
    while run.checkpoint is not None:
        save = next(
            (
                (index, event)
                for index, event in enumerate(journal)
                if saves_checkpoint(event) and event.data["checkpoint"] == run.checkpoint
            ),
            None,
        )
        if save is None or save[1].run not in runs:
            break
        index, event = save
        found += [
            other.data["value"]
            for other in journal[:index]
            if other.kind == "executor.output" and other.run == event.run
        ]
        run = runs[event.run]
    return found


PLUGIN = judge
