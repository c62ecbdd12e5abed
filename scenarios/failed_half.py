"""A failed run leaves half of a join on the instance, and the next run delivers it.

Two branches of different length meet in a fan-in. The short one has arrived when the long one fails; its message
stays in the fan-in's buffer, which only a restore clears. A new message on the same instance meets it there.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Start(Executor):
    """Sends an order down both branches."""

    @handler
    async def begin(self, order: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(order)


class Reserve(Executor):
    """The short branch."""

    @handler
    async def reserve(self, order: int, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"reserved order {order}")


class Quote(Executor):
    """The first half of the long branch."""

    @handler
    async def quote(self, order: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(order)


class Charge(Executor):
    """The second half of the long branch, which fails the first time."""

    @handler
    async def charge(self, order: int, ctx: WorkflowContext[str]) -> None:
        await harness.point("call")
        if harness.attempt() == 0:
            raise RuntimeError("service unavailable")
        await ctx.send_message(f"charged order {order}")


class Ship(Executor):
    """The join."""

    @handler
    async def ship(self, done: list[str], ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(" and ".join(done))


def order_flow():
    """Build the workflow."""
    start, reserve, quote = Start(id="start"), Reserve(id="reserve"), Quote(id="quote")
    charge, ship = Charge(id="charge"), Ship(id="ship")
    return (
        WorkflowBuilder(name="order_flow", start_executor=start, output_from=[ship])
        .add_fan_out_edges(start, [reserve, quote])
        .add_edge(quote, charge)
        .add_fan_in_edges([reserve, charge], ship)
        .build()
    )


@harness.scenario(
    "failed_half",
    storages=["memory", "file", "remote", "sqlite"],
    reference="failed half",
    affected=">=1.0,<1.24",
    budget=100,
    oracles=("run-isolation",),
)
async def failed_half(durable):
    """A run on an instance whose last run failed ends as it would on an instance of its own."""
    failed = await durable.run(order_flow, 7)
    await durable.run(order_flow, 8, instance=failed.instance)
