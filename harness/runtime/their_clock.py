"""Iterations of a program that put a clock of its own in place of the loop's.

Owns those iterations; must not know schedulers: there is nothing left to choose.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harness.model.errors import TurnLimitError
from harness.runtime.parked import deliver_op
from harness.runtime.waits import describe_waits

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

_stock: Any = asyncio.SelectorEventLoop


def run_once(loop: ControlledLoop) -> bool:
    """Run one iteration of stock asyncio for a program that put a clock of its own in place of ours.

    It winds that clock by hand or in ``_selector.select`` (aiotools.VirtualClock), so it decides about time.
    Returns False, having done nothing, when there is nothing that its clock could bring.
    """
    ready: Any = loop._ready  # type: ignore[attr-defined]
    ready.extend(handle for *_, handle in loop.foreign)
    loop.foreign.clear()
    for op in list(loop.parked):
        deliver_op(loop, op)
    if not ready and not loop._scheduled:  # type: ignore[attr-defined]
        return False
    loop.iteration += 1
    loop.turn += len(ready)
    if 0 < loop.settings.turn_limit < loop.turn:
        raise TurnLimitError(f"no end after {loop.settings.turn_limit} turns\n{describe_waits(loop)}")
    _stock._run_once(loop)
    return True
