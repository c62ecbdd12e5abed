"""langgraph: a sleep of 0.2 s ends before what a busy second delays."""

import asyncio
import time
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    done: bool


async def main():
    logs = []

    async def awhile(state: State) -> None:
        logs.append("start")
        try:
            await asyncio.sleep(1)
        finally:
            logs.append("end")

    builder = StateGraph(State)
    builder.add_node("agent", awhile)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    events = graph.astream_events({"done": False}, config, version="v2", include_names=["LangGraph"], durability="exit")
    await anext(events)
    task = asyncio.create_task(anext(events))
    asyncio.get_running_loop().call_soon(time.sleep, 0.3)  # the process does not get the processor
    await asyncio.sleep(0.2)
    task.cancel()
    assert logs == ["start"], logs


asyncio.run(main())
