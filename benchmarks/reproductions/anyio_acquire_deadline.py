"""anyio: a deadline of 0.1 s does not pass during one turn."""

import asyncio
import time

from anyio import CapacityLimiter, create_task_group, move_on_after
from anyio.lowlevel import checkpoint


async def main():
    limiter, entered = CapacityLimiter(1), asyncio.Event()

    async def borrower():
        async with limiter:
            await checkpoint()
            entered.set()

    async with create_task_group() as group:
        async with limiter:
            group.start_soon(borrower)
            await checkpoint()
        with move_on_after(0.1) as scope:
            time.sleep(0.2)  # the process does not get the processor
            await entered.wait()
    assert not scope.cancelled_caught


asyncio.run(main())
