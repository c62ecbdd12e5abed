"""microsoft/agent-framework PR #6776: two messages for one executor are handled at once.

Two sources deliver to one executor in one superstep. Its handlers interleave at their first await, so that a counter
that both read and then write is 1 after two messages. Since 1.11 an executor handles one message at a time.
"""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import harness


class Pass(Executor):
    """Sends on what it gets."""

    @handler
    async def work(self, order: str, ctx: WorkflowContext[str]) -> None:
        """Send."""
        await ctx.send_message(f"{order} {self.id}")


class Count(Executor):
    """Counts the messages that it got."""

    count = 0

    @handler
    async def add(self, order: str, ctx: WorkflowContext[str, str]) -> None:
        """Read, wait, write."""
        count = self.count
        await harness.point("ledger")
        self.count = count + 1
        await ctx.yield_output(order)


def order_flow():
    """Build a new instance: start -> (left | right) -> count."""
    start, left, right = (Pass(id=name) for name in ("start", "left", "right"))
    count = Count(id="count")
    builder = WorkflowBuilder(name="order_flow", start_executor=start)
    builder.add_fan_out_edges(start, [left, right])
    builder.add_edge(left, count).add_edge(right, count)
    return builder.build()


@harness.scenario(
    "pr_6776",
    storages=["memory"],
    reference="microsoft/agent-framework PR #6776",
    affected="<1.11",
    oracles=(),
    budget=100,
)
async def pr_6776(durable):
    """An executor that got two messages counts two."""
    run = await durable.run(order_flow, "order 7")
    count = next(item for item in run.instance.get_executors_list() if item.id == "count").count
    assert count == 2, f"two messages were counted as {count}"
