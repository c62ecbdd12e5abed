"""progress: a run ends.

Owns this one promise; must not know what a run waits for. How the program itself ended is judged with
the execution (search/target.py), which can say who waits for whom.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import runs_of


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: with everything delivered, the run ends: whatever was started has ended when the program is over."""
    for run in runs_of(journal).values():
        if run.ended is None:
            turn = journal[-1].turn
            begun = journal[run.begun].turn
            return Violation("progress", f"run {run.number} of {run.name} began (turn {begun}) and never ended", turn)
    return None


PLUGIN = judge
