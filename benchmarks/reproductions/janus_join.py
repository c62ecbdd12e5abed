"""janus: a timeout of 0.1 s does not pass during one turn."""

import asyncio
import time

import janus


async def main():
    queue = janus.Queue()
    queue.sync_q.put(1)
    task = asyncio.create_task(queue.async_q.join())
    await asyncio.sleep(0.01)
    queue.close()
    asyncio.get_running_loop().call_soon(time.sleep, 0.2)  # the process does not get the processor
    await asyncio.wait_for(task, timeout=0.1)  # TimeoutError


asyncio.run(main())
