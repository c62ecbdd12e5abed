"""microsoft/agent-framework #7371, PR #7948: a half-filled fan-in is lost by a checkpoint.

One branch reaches the join a superstep before the other. The checkpoint in between holds neither the message that
waits in the join's buffer nor a trace of it: after a resume from there the join never fires. Nor is the buffer reset by
a restore on the same instance: the join then mixes the halves of two attempts. Fixed in 1.18.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Pass(Executor):
    """Sends on what it gets, with its name."""

    @handler
    async def work(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Work, then send."""
        await harness.point(self.id)
        await ctx.send_message(f"{order} {self.id}")


class Flaky(Executor):
    """Fails the first time."""

    @handler
    async def work(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Call a service that is away at first, then send."""
        await harness.point(self.id)
        if harness.attempt() == 0:
            raise RuntimeError("service unavailable")
        await ctx.send_message(f"{order} {self.id}")


class Join(Executor):
    """Waits for both branches."""

    @handler
    async def join(self, parts: list[str], ctx: WorkflowContext[str, str]) -> None:
        """Yield both halves."""
        await ctx.yield_output(" and ".join(sorted(parts)))


def build(price):
    """Build a new instance: start -> (stock | quote -> price) -> join."""
    start, stock, quote = (Pass(id=name) for name in ("start", "stock", "quote"))
    builder = WorkflowBuilder(name="order_flow", start_executor=start)
    builder.add_fan_out_edges(start, [stock, quote])
    builder.add_edge(quote, price)
    builder.add_fan_in_edges([stock, price], Join(id="join"))
    return builder.build()


def order_flow():
    """Build an instance in which nothing fails."""
    return build(Pass(id="price"))


def flaky_flow():
    """Build an instance whose first run fails when one half waits in the join."""
    return build(Flaky(id="price"))


COMMON = {
    "storages": ["memory"],
    "reference": "microsoft/agent-framework #7371",
    "affected": "<1.18",
    "oracles": ("restore-complete",),
    "faults": ("resume",),
    "budget": 100,
}


@harness.scenario("issue_7371", **COMMON)
async def issue_7371(durable):
    """A workflow that is resumed from any of its checkpoints ends with the same output."""
    run = await durable.run(order_flow, "order 7")
    await durable.resume(run)


@harness.scenario("issue_7371_mixed", **COMMON)
async def issue_7371_mixed(durable):
    """A failed run that is resumed from any of its checkpoints, on any instance, ends with the same output."""
    run = await durable.run(flaky_flow, "order 7")
    await durable.resume(run)
