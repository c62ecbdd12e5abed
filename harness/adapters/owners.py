"""Which run a task belongs to, and which run cancels it.

Owns the record of each run's root task; must not know what the tasks do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.runtime.identity import ControlledTask, path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.waits import live_tasks

_KEY = "owners"


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


def left_of(loop: ControlledLoop, owned: Ownership) -> list[str]:
    """Note that a run has ended; return the paths of those of its tasks that are still alive."""
    owned.last = len(loop.births)
    return [path_of(loop, task) for task in live_tasks(loop) if owner_of(loop, task) == owned.run]


@contextlib.contextmanager
def cancellations_noted() -> Iterator[None]:
    """Note which task of which run cancels which task."""
    own = vars(ControlledTask).get("cancel")
    original = ControlledTask.cancel

    def cancel(self: ControlledTask, msg: Any = None) -> bool:
        loop = self.get_loop()
        current = asyncio.current_task() if asyncio._get_running_loop() is loop else None
        if isinstance(loop, ControlledLoop) and current is not None and current is not self and not self.done():
            by = owner_of(loop, current)
            if by is not None:
                loop.note("task.cancelled", path_of(loop, self), run=by, owner=owner_of(loop, self))
        return original(self, msg)

    ControlledTask.cancel = cancel  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        if own is None:
            del ControlledTask.cancel
        else:
            ControlledTask.cancel = own  # type: ignore[method-assign]


def _covers(loop: ControlledLoop, run: Ownership, child: int) -> bool:
    """Return whether ``child``, the root itself or one of its children, belongs to ``run``."""
    if child == run.root:
        return run.own or len(loop.births) < run.last  # a caller acts for the run while it awaits it
    return run.first <= child < run.last
