"""aiojobs: a shielded task has been forgotten 0.01 s after it ended."""

import asyncio
import time
from contextlib import suppress

from aiojobs import Scheduler


async def main():
    scheduler = Scheduler()

    async def outer():
        await scheduler.shield(asyncio.sleep(0.1))

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    asyncio.get_running_loop().call_soon(time.sleep, 0.2)  # the process does not get the processor
    await asyncio.sleep(0.11)
    assert len(scheduler._shields) == 0  # fails: its callback comes in the next iteration
    await scheduler.close()


asyncio.run(main())
