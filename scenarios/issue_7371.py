"""microsoft/agent-framework #7371, PR #7948: a half-filled fan-in is lost by a checkpoint.

One branch reaches the join a superstep before the other. The checkpoint in between holds neither the message that
waits in the join's buffer nor a trace of it: after a resume from there the join never fires. Fixed in 1.18.
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


class Join(Executor):
    """Waits for both branches."""

    @handler
    async def join(self, parts: list[str], ctx: WorkflowContext[str, str]) -> None:
        """Yield both halves."""
        await ctx.yield_output(" and ".join(sorted(parts)))


def order_flow():
    """Build a new instance: start -> (stock | quote -> price) -> join."""
    start, stock, quote, price = (Pass(id=name) for name in ("start", "stock", "quote", "price"))
    builder = WorkflowBuilder(name="order_flow", start_executor=start)
    builder.add_fan_out_edges(start, [stock, quote])
    builder.add_edge(quote, price)
    builder.add_fan_in_edges([stock, price], Join(id="join"))
    return builder.build()


COMMON = {
    "storages": ["memory"],
    "reference": "microsoft/agent-framework #7371",
    "affected": "<1.18",
    "faults": ("resume",),
    "budget": 100,
}


@harness.scenario("issue_7371", oracles=("restore-complete",), **COMMON)
async def issue_7371(durable):
    """A workflow that is resumed from any of its checkpoints ends with the same output."""
    run = await durable.run(order_flow, "order 7")
    await durable.resume(run)
