"""The consumer drops a graph stream in mid-superstep and starts the next run at once.

The guard of the instance is a weak reference to the stream, so the new run is accepted; the old generator is
finalized later, by the loop, and discards what the new run has written to the state and not yet committed.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Charge(Executor):
    """Keeps the order in the state of the workflow, and takes its time to clean up."""

    @handler
    async def charge(self, order: int, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("order", order)
        try:
            await harness.point("call")
        finally:
            await harness.point("release")
        await ctx.send_message("charged")


class Ship(Executor):
    """Reads the order in the next superstep."""

    @handler
    async def ship(self, what: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(f"{what} and shipped order {ctx.get_state('order')}")


def order_flow():
    """Build the workflow."""
    charge, ship = Charge(id="charge"), Ship(id="ship")
    return WorkflowBuilder(name="order_flow", start_executor=charge, output_from=[ship]).add_edge(charge, ship).build()


@harness.scenario(
    "dropped_stream",
    storages=["memory", "file", "remote", "sqlite"],
    reference="dropped stream",
    affected=">=1.10,<1.24",
    budget=100,
    oracles=("run-isolation",),
    faults=("drop",),
)
async def dropped_stream(durable):
    """A run ends as it would on an instance of its own, whatever became of the stream before it."""
    first = await durable.run(order_flow, 7, stream=True)
    await durable.run(order_flow, 8, instance=first.instance)
