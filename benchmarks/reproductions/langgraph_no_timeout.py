"""langgraph: a node that takes twice its timeout is stopped."""

import asyncio
import time
from collections import deque

from langgraph.errors import NodeTimeoutError
from langgraph.pregel._retry import arun_with_retry
from langgraph.runtime import DEFAULT_RUNTIME
from langgraph.types import PregelExecutableTask, TimeoutPolicy


class Slow:
    async def ainvoke(self, input, config):
        await asyncio.sleep(0.2)


async def main():
    config = {"configurable": {"__pregel_runtime": DEFAULT_RUNTIME, "checkpoint_ns": "", "__pregel_task_id": "1"}}
    timeout = TimeoutPolicy(idle_timeout=0.1)
    task = PregelExecutableTask("slow", None, Slow(), deque(), config, [], [], None, "1", (), timeout=timeout)
    asyncio.get_running_loop().call_later(0.05, time.sleep, 0.3)  # the process does not get the processor
    try:
        await arun_with_retry(task, retry_policy=None)
    except NodeTimeoutError:
        return
    raise AssertionError("it ended in time")


asyncio.run(main())
