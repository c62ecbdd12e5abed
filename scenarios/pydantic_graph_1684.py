"""pydantic/pydantic-ai #1684: a snapshot of the history changes after the graph was resumed from it.

``FullStatePersistence`` copies the state when it takes a snapshot, but ``load_next`` hands the stored snapshot itself
to the resumed run, whose nodes then change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import harness


@dataclass
class Counter:
    """The state of the graph."""

    left: int


def countdown() -> tuple[Any, Any]:
    """Build a graph that counts down, and the node that it begins with."""
    from pydantic_graph import BaseNode, End, Graph, GraphRunContext

    @dataclass
    class CountDown(BaseNode[Counter, None, int]):
        async def run(self, ctx: GraphRunContext[Counter]) -> CountDown | End[int]:
            if ctx.state.left <= 0:
                return End(ctx.state.left)
            ctx.state.left -= 1
            return CountDown()

    return Graph(nodes=[CountDown], name="countdown"), CountDown()


@harness.scenario(
    "pydantic_graph_1684",
    storages=["full-state"],
    adapter="pydantic-graph",
    package="pydantic-graph",
    affected="<1.0.16",
    oracles=("snapshot-immutable", "completed-steps-restored"),
    reference="pydantic/pydantic-ai #1684",
    shapes=False,
    budget=50,
)
async def pydantic_graph_1684(durable):
    """A snapshot in the history stays what it was when it was taken."""
    graph, start = countdown()
    run = await durable.run(graph, start, state=Counter(2), steps=1)
    resumed = await durable.resume(run, steps=3)
    assert (run.ending, resumed.ending, resumed.outputs) == ("returned", "returned", [0]), (run.error, resumed.error)
