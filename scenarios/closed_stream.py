"""The consumer closes a graph stream, and the next run on the instance shows what the closed one put out.

Events wait in a queue of the instance. Closing the stream in mid-superstep stops the run, and neither that nor
the beginning of the next run empties the queue.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Charge(Executor):
    """The only executor."""

    @handler
    async def charge(self, order: int, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(f"charged order {order}")


def order_flow():
    """Build the workflow."""
    charge = Charge(id="charge")
    return WorkflowBuilder(name="order_flow", start_executor=charge, output_from=[charge]).build()


@harness.scenario(
    "closed_stream",
    storages=["memory", "file", "remote", "sqlite"],
    reference="closed stream: events of a closed run are put out by the next",
    affected=">=1.20,<1.24",
    budget=100,
    oracles=("run-isolation",),
    faults=("close",),
)
async def closed_stream(durable):
    """A run shows nothing of a run before it whose stream was closed."""
    first = await durable.run(order_flow, 7, stream=True)
    await durable.run(order_flow, 8, instance=first.instance)
