"""Which run a task belongs to.

Owns the record of each run's root task; must not know what the tasks do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.runtime.loop import ControlledLoop

_KEY = "agent-framework runs"


@dataclass(slots=True)
class Ownership:
    """The tasks of one run: what its root creates from task ``first`` on, and before task ``last``.

    own: the root itself belongs to the run; otherwise it is the task of the caller, who awaits the run.
    """

    run: int
    root: int
    first: int
    own: bool
    last: int = 1 << 60


def begin(loop: ControlledLoop, run: int, *, root: int, own: bool) -> Ownership:
    """Note that a run begins."""
    made = Ownership(run, root, len(loop.births), own)
    loop.scratch.setdefault(_KEY, []).append(made)
    return made


def owner_of(loop: ControlledLoop, task: Any) -> int | None:
    """Return the number of the run that ``task`` belongs to, or None."""
    known: list[Ownership] = loop.scratch.get(_KEY, [])
    number = getattr(task, "number", -1)
    child = number
    while number >= 0:
        for run in reversed(known):
            if run.root == number and _covers(loop, run, child):
                return run.run
        child, number = number, loop.births[number].parent
    return None


def _covers(loop: ControlledLoop, run: Ownership, child: int) -> bool:
    """Return whether ``child``, the root itself or one of its children, belongs to ``run``."""
    if child == run.root:
        return run.own or len(loop.births) < run.last  # a caller acts for the run while it awaits it
    return run.first <= child < run.last
