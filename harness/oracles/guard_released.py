"""guard_released: an instance runs one run at a time, and always the next.

Owns this one promise; must not know how a framework guards an instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import Run, runs_of

# Both kinds of workflow of agent-framework say so, in every release from 1.0 to 1.23.
_REFUSED = "already running"


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: the next run is accepted after a run ended, and never two are active.

    A dropped stream is finalized by the loop: its run counts as ended for the guard when everything was
    quiet once. Two runs are active when both execute something on one instance while neither has ended.
    """
    runs = runs_of(journal)
    quiet = [index for index, event in enumerate(journal) if event.kind == "quiet"]
    for run in runs.values():
        others = [other for other in runs.values() if other is not run and other.begun < run.begun]
        before = [other for other in others if other.data.get("instance") == run.data.get("instance")]
        if _REFUSED in str(run.end.get("error")) and all(_over(other, run.begun, quiet) for other in before):
            return Violation(
                "guard_released",
                f"run {run.number} was refused after every run on its instance had ended: {run.end['error']}",
                journal[run.begun].turn,
            )
        for other in before:
            both = _both_active(journal, run, other)
            if both is not None:
                message = f"runs {other.number} and {run.number} are active on one instance at the same time"
                return Violation("guard_released", message, both.turn)
    return None


def _over(run: Run, at: int, quiet: Sequence[int]) -> bool:
    """Return whether ``run`` had ended for its instance when the journal was at position ``at``."""
    if run.ended is None or run.ended > at:
        return False
    return run.how != "dropped" or any(run.ended < index < at for index in quiet)


def _both_active(journal: Sequence[Event], run: Run, other: Run) -> Event | None:
    """Return the event at which both had executed something while neither had ended, or None."""
    active: set[int] = set()
    for index, event in enumerate(journal):
        if index <= run.begun or event.kind not in ("step.invoked", "executor.invoked"):
            continue
        if any(item.ended is not None and item.ended < index for item in (run, other)):
            return None
        active.add(event.run)
        if {run.number, other.number} <= active:
            return event
    return None


PLUGIN = judge
