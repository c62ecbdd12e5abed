"""langgraph: of two jobs on threads the one that begins 0.1 s earlier ends first."""

import asyncio
import time
from typing import TypedDict

from langchain_core.tools import tool
from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    first: str
    second: str


@tool
def search_api(query: str) -> str:
    """Search."""
    if query == "first":
        time.sleep(0.3)  # the worker thread does not get the processor
    return query


async def main():
    async def first(state: State) -> State:
        return {"first": await search_api.ainvoke("first")}

    async def second(state: State) -> State:
        await asyncio.sleep(0.1)
        return {"second": await search_api.ainvoke("second")}

    builder = StateGraph(State)
    for node in (first, second):
        builder.add_node(node)
        builder.add_edge(START, node.__name__)
    updates = [update async for update in builder.compile().astream({"first": ""}, stream_mode="updates")]
    assert [*updates[0], *updates[1]] == ["first", "second"], updates


asyncio.run(main())
