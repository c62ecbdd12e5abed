"""A graph run is cancelled after its checkpoint was committed and before the storage said so: the chain forks.

The head of the chain moves only when ``save`` returns. The next run on the instance names the old head as its
parent, which has a child already.
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
    "commit_no_ack",
    storages=["memory", "file", "remote", "sqlite"],
    reference="commit, no ack",
    affected=">=1.13,<1.24",
    breaks_on=("file", "sqlite"),
    budget=100,
    oracles=("linear-lineage",),
    faults=("cancel",),
)
async def commit_no_ack(durable):
    """The checkpoints of an instance form one chain, also after a run on it was cancelled."""
    first = await durable.run(order_flow, 7)
    await durable.run(order_flow, 8, instance=first.instance)
