"""microsoft/agent-framework #7683: a stored checkpoint aliases live state.

A resumed run shares the lists in its state with the checkpoint that it was restored from. An executor that appends to
one changes the stored checkpoint: a second resume from it begins with what the first one did. Fixed in 1.16.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Charge(Executor):
    """Begins a list in the workflow's state."""

    @handler
    async def charge(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Note that the order was charged."""
        ctx.set_state("done", [f"charged {order}"])
        await ctx.send_message(order)


class Ship(Executor):
    """Appends to the list, and fails the first time."""

    @handler
    async def ship(self, order: str, ctx: WorkflowContext[str, str]) -> None:
        """Call a service that is away at first, then note that the order was shipped."""
        await harness.point("carrier")
        if harness.attempt() == 0:
            raise RuntimeError("service unavailable")
        done = ctx.get_state("done")
        done.append(f"shipped {order}")
        ctx.set_state("done", done)
        await ctx.yield_output("; ".join(done))


def order_flow():
    """Build a new instance."""
    charge, ship = Charge(id="charge"), Ship(id="ship")
    return WorkflowBuilder(name="order_flow", start_executor=charge).add_edge(charge, ship).build()


@harness.scenario(
    "issue_7683",
    storages=["memory"],
    reference="microsoft/agent-framework #7683",
    affected="<1.16",
    oracles=("snapshot-immutable",),
    budget=100,
)
async def issue_7683(durable):
    """A checkpoint in the storage stays what it was when it was saved."""
    run = await durable.run(order_flow, "order 7")
    await durable.resume(run)
