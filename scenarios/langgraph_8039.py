"""langchain-ai/langgraph #8039: with durability "sync", a finished node is executed again after a crash.

The writes of a node and the checkpoint that supersedes them are put by two background tasks, and nothing orders them.
When the process dies in the put of the checkpoint while the writes are not durable, the resumed run executes the
node again.
"""

from typing import Any, TypedDict

import harness


class Order(TypedDict, total=False):
    """The state of the graph."""

    order: int
    charged: bool


async def charge(_state: Order) -> Order:
    """Call a payment service."""
    harness.effect("charge")
    return {"charged": True}


def order_graph() -> Any:
    """Build a graph of one node."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(Order)
    graph.add_node("charge", charge)
    graph.add_edge(START, "charge")
    graph.add_edge("charge", END)
    return graph


@harness.scenario(
    "langgraph_8039",
    storages=["memory", "remote", "sqlite"],
    adapter="langgraph",
    package="langgraph",
    affected=">=0.6,<1.3",
    breaks_on=("remote", "sqlite"),
    reference="langchain-ai/langgraph #8039",
    requires=("langgraph-checkpoint-sqlite",),
    shapes=False,
    faults=("crash",),
    budget=200,
)
async def langgraph_8039(durable):
    """A node whose checkpoint was begun before the process died is restored by the resume."""
    run = await durable.run(order_graph, {"order": 7}, durability="sync")
    resumed = await durable.resume(run)
    assert run.error is None, run.error
    assert resumed.error is None, resumed.error
