"""langgraph: what a node streams arrives on the tenth of a second."""

import asyncio
import time
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import StreamWriter


class State(TypedDict):
    done: bool


async def node(state: State, writer: StreamWriter) -> State:
    writer("before")
    await asyncio.sleep(0.2)
    writer("after")
    return {"done": True}


async def main():
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    began, seen = time.perf_counter(), []
    asyncio.get_running_loop().call_soon(time.sleep, 0.3)  # the process does not get the processor
    async for chunk in builder.compile().astream({"done": False}, stream_mode="custom"):
        seen.append((round(time.perf_counter() - began, 1), chunk))
    assert seen == [(0.0, "before"), (0.2, "after")], seen


asyncio.run(main())
