"""What a program under test may call: points, faults and the number of its attempt.

Owns the functions that are no-ops outside an execution; must not know oracles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from harness.runtime.attempt import attempt
from harness.runtime.loop import ControlledLoop

# Set in the scratch of a loop whose search chooses await shapes.
SHAPES_ON = "shapes"


async def point(name: str = "point") -> None:
    """Wait for something of unknown latency, called ``name`` in reports and schedules.

    Outside a controlled loop it yields once, so that the program runs there too.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        await loop.park(name)
    else:
        await asyncio.sleep(0)


def effect(name: str) -> None:
    """Note a side effect called ``name`` in the journal, for the oracles; does nothing outside an execution."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        loop.note("effect", name, run=attempt())


def fault(name: str) -> bool:
    """Return whether the search injects the failure called ``name`` here; always False outside one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ControlledLoop):
        return False
    return loop.choose("fault", ("none", name), subject=name, interesting=True) > 0


def shape(name: str, options: Sequence[str]) -> str:
    """Return how ``name`` waits in this execution: any of ``options`` where the search chooses await shapes too.

    Elsewhere, and by default, it is the first one.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ControlledLoop) or not loop.scratch.get(SHAPES_ON):
        return options[0]
    return options[loop.choose("shape", tuple(options), subject=name)]
