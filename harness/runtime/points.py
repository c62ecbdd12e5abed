"""What a program under test may call: points, faults and the number of its attempt.

Owns the functions that are no-ops outside an execution; must not know oracles.
"""

from __future__ import annotations

import asyncio

from harness.runtime.loop import ControlledLoop


async def point(name: str = "point") -> None:
    """Wait for something of unknown latency, called ``name`` in reports and schedules.

    Outside a controlled loop it yields once, so that the program runs there too.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        await loop.park(name)
    else:
        await asyncio.sleep(0)


def fault(name: str, *, interesting: bool = True) -> bool:
    """Return whether the search injects the failure called ``name`` here; always False outside one.

    interesting: whether a search tries it early.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ControlledLoop):
        return False
    return loop.choose("fault", ("none", name), subject=name, interesting=interesting) > 0
