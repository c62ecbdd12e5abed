"""microsoft/agent-framework #4588: the first checkpoint after a restore has no parent.

A graph workflow fails, and is resumed from its latest checkpoint. The checkpoints of the resumed run form a chain of
their own: the history has two roots. Fixed in 1.10.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Charge(Executor):
    """Works, and sends on."""

    @handler
    async def charge(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Charge the order."""
        await harness.point("bank")
        await ctx.send_message(f"charged {order}")


class Ship(Executor):
    """Fails the first time."""

    @handler
    async def ship(self, charged: str, ctx: WorkflowContext[str, str]) -> None:
        """Call a service that is away at first."""
        await harness.point("carrier")
        if harness.attempt() == 0:
            raise RuntimeError("service unavailable")
        await ctx.yield_output(charged)


def order_flow():
    """Build a new instance."""
    charge, ship = Charge(id="charge"), Ship(id="ship")
    return WorkflowBuilder(name="order_flow", start_executor=charge).add_edge(charge, ship).build()


@harness.scenario(
    "issue_4588",
    storages=["memory"],
    reference="microsoft/agent-framework #4588",
    affected="<1.10",
    oracles=("linear-lineage",),
    budget=100,
)
async def issue_4588(durable):
    """The checkpoints of a run and of its resume form one chain."""
    run = await durable.run(order_flow, "order 7")
    await durable.resume(run)
