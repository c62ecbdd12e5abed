"""Declared accesses: what a program says about the state that its tasks share.

Owns the two calls that a program may make; must not know which reduction uses them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# Where the accesses of the turn that runs are kept: name to whether it was written.
DECLARED = "accesses"
PROMISE = "declared"


def access(name: str, *, write: bool) -> None:
    """Note that this turn reads or writes what is called ``name``; a no-op outside an execution."""
    loop = _controlled_loop()
    if loop is not None:
        noted: dict[str, bool] = loop.scratch.setdefault(DECLARED, {})
        noted[name] = noted.get(name, False) or write


def declared() -> None:
    """Promise that from here on every turn of this execution notes all shared state that it touches.

    A search in the mode ``certain`` relies on it: turns that share nothing are not tried in both orders. What
    asyncio itself shares (futures, locks, queues, cancellations) need not be noted if it is noted as the object
    that it stands for.
    """
    loop = _controlled_loop()
    if loop is not None:
        loop.scratch[PROMISE] = True


def _controlled_loop() -> ControlledLoop | None:
    from harness.runtime.loop import ControlledLoop

    loop = asyncio._get_running_loop()
    return loop if isinstance(loop, ControlledLoop) else None
