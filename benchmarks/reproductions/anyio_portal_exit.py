"""anyio: a thread that was started calls within 0.1 s."""

import asyncio
import threading
import time

from anyio import sleep
from anyio.from_thread import BlockingPortal


async def main():
    results = []

    def external_thread():
        time.sleep(0.2)  # the thread does not get the processor
        try:
            portal.call(sleep, 0.2)
        except RuntimeError as error:
            results.append(error)

    async with BlockingPortal() as portal:
        thread = threading.Thread(target=external_thread)
        thread.start()
        await sleep(0.1)
    thread.join()
    assert not results, results  # This task group is not active, or: This portal is not running


asyncio.run(main())
