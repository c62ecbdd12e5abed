"""no_zombies: what has ended stays ended.

Owns this one promise; must not know how a framework stops its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import runs_of

# What a run does, as opposed to what is done to it: a cancellation that arrives late is no new work.
_WORK = ("step.invoked", "step.completed", "executor.invoked", "executor.completed", "effect", "save.called")
_MORE = ("save.snapshot", "save.committed", "save.acknowledged", "executor.output")


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: after a run ended, no task of it is alive and no effect, event or save of it happens.

    What happened is reported rather than the task that did it. A dropped stream is finalized later, by the
    loop: of a dropped run only what it begins anew counts, not what its finalizer still has to stop.
    """
    runs = runs_of(journal)
    for index, event in enumerate(journal):
        run = runs.get(event.run)
        if run is None or run.ended is None or index <= run.ended:
            continue
        kinds = _WORK if run.how == "dropped" else (*_WORK, *_MORE)
        if event.kind in kinds:
            what = event.data.get("call") or event.subject
            return _violation(f"run {event.run} ended ({run.how}), and then came {event.kind} {what}", event.turn)
    for run in runs.values():
        left = run.end.get("left")
        if left and run.ended is not None and run.how != "dropped":
            turn = journal[run.ended].turn
            return _violation(f"run {run.number} ended ({run.how}) and left tasks alive: {', '.join(left)}", turn)
    return None


def _violation(message: str, turn: int) -> Violation:
    return Violation("no_zombies", message, turn)


PLUGIN = judge
