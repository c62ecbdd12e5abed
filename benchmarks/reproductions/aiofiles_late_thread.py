"""aiofiles: a worker thread opens a file within 0.1 s."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import aiofiles


async def main():
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    loop.run_in_executor(None, time.sleep, 0.3)  # the worker thread is late
    opening = aiofiles.open(__file__)
    file = None

    async def process():
        nonlocal file
        async with opening:
            file = opening._obj
            await asyncio.sleep(10)

    with suppress(TimeoutError):
        await asyncio.wait_for(process(), 0.1)
    assert file.closed  # AttributeError: it is None


asyncio.run(main())
