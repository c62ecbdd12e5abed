"""microsoft/agent-framework #7859, PR #8306: state of a failed superstep reaches the next run.

An executor writes to the workflow's state and fails. What it wrote stays pending on the instance, and the next run
commits it with its first superstep. Fixed in 1.22.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Charge(Executor):
    """Writes what it is about to do, and fails for an order that is refused."""

    @handler
    async def charge(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Note the order, ask the bank."""
        ctx.set_state(f"note for {order}", f"charging {order}")
        await harness.point("bank")
        if order == "refused order":
            raise RuntimeError("card declined")
        await ctx.send_message(f"charged {order}")


class Ship(Executor):
    """Ends the workflow."""

    @handler
    async def ship(self, charged: str, ctx: WorkflowContext[str, str]) -> None:
        """Yield what was charged."""
        await ctx.yield_output(charged)


def order_flow():
    """Build a new instance."""
    charge, ship = Charge(id="charge"), Ship(id="ship")
    return WorkflowBuilder(name="order_flow", start_executor=charge).add_edge(charge, ship).build()


@harness.scenario(
    "issue_7859",
    storages=["memory"],
    reference="microsoft/agent-framework #7859",
    affected=">=1.10,<1.22",
    oracles=("run-isolation",),
    budget=100,
)
async def issue_7859(durable):
    """What a run wrote before it failed does not show in the next run of that instance."""
    refused = await durable.run(order_flow, "refused order")
    await durable.run(order_flow, "good order", instance=refused.instance)
