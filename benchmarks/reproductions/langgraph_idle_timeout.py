"""langgraph: a node that reports progress every 0.08 s is never idle for 0.15 s."""

import asyncio
import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import TimeoutPolicy


class State(TypedDict):
    done: bool


async def node(state: State, runtime: Runtime) -> State:
    for _ in range(3):
        await asyncio.sleep(0.08)
        runtime.heartbeat()
        time.sleep(0.3)  # the process does not get the processor
    return {"done": True}


async def main():
    builder = StateGraph(State)
    builder.add_node("node", node, timeout=TimeoutPolicy(idle_timeout=0.15))
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    await builder.compile().ainvoke({"done": False})  # NodeTimeoutError


asyncio.run(main())
