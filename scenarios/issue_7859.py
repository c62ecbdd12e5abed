"""microsoft/agent-framework #7859, PR #8306: state of a failed superstep reaches the next run.

An executor writes to the workflow's state and fails. What it wrote stays pending on the instance, and the next run
commits it with its first superstep. Since 1.2.2, when a run stopped clearing the state of its instance; fixed in 1.22.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Charge(Executor):
    """Notes what it is about to do, and fails for an order that is refused."""

    @handler
    async def charge(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Note the order, ask the bank."""
        ctx.set_state("basket", [*ctx.get_state("basket", []), order])
        await harness.point("bank")
        if order == "refused":
            raise RuntimeError("card declined")
        await ctx.send_message(order)


class Ship(Executor):
    """Ends the workflow."""

    @handler
    async def ship(self, order: str, ctx: WorkflowContext[str, str]) -> None:
        """Ship what is in the basket, and empty it."""
        await ctx.yield_output(f"shipped {', '.join(ctx.get_state('basket', []))}")
        ctx.set_state("basket", [])


def order_flow():
    """Build a new instance."""
    charge, ship = Charge(id="charge"), Ship(id="ship")
    return WorkflowBuilder(name="order_flow", start_executor=charge).add_edge(charge, ship).build()


@harness.scenario(
    "issue_7859",
    storages=["memory"],
    reference="microsoft/agent-framework #7859",
    affected=">=1.2.2,<1.22",
    oracles=("run-isolation",),
    budget=100,
)
async def issue_7859(durable):
    """What a run wrote before it failed does not show in the next run of that instance."""
    refused = await durable.run(order_flow, "refused")
    await durable.run(order_flow, "good", instance=refused.instance)
