"""A graph workflow that branches, joins and asks a human survives a cancellation and a crash.

A promise and no bug: the run may be cancelled or die at any moment, and so may each run that continues it; the order
is shipped all the same, once it is approved. It may be shipped twice, for a superstep that did not end runs again; and
the output of a run that was cancelled after its last checkpoint is seen by nobody, so what was shipped is looked at.

Whoever continues waits until the last run is quiet. Resumed at once, the history can fork where a write takes its time:
the save of the cancelled run lands after the resumed run has asked for the latest checkpoint, and both go on from one
parent.
"""

import functools

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler

import harness


class Start(Executor):
    """Sends an order down both branches."""

    @handler
    async def begin(self, order: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(order)


class Work(Executor):
    """One branch."""

    @handler
    async def work(self, order: int, ctx: WorkflowContext[str]) -> None:
        await harness.point("call")
        await ctx.send_message(f"{self.id} order {order}")


class Approve(Executor):
    """The join, which asks a human and ships what was approved.

    shipped: the books of another system, which outlive every run.
    """

    def __init__(self, shipped: list[str]) -> None:
        super().__init__(id="approve")
        self._shipped = shipped

    @handler
    async def join(self, done: list[str], ctx: WorkflowContext[None, str]) -> None:
        await ctx.request_info(" and ".join(sorted(done)), str, request_id="approve")

    @response_handler
    async def answered(self, done: str, answer: str, ctx: WorkflowContext[None, str]) -> None:
        await harness.point("carrier")
        self._shipped.append(f"{done}: {answer}")
        await ctx.yield_output(self._shipped[-1])


def order_flow(shipped: list[str]):
    """Build the workflow."""
    start, approve = Start(id="start"), Approve(shipped)
    branches = [Work(id="reserve"), Work(id="charge")]
    return (
        WorkflowBuilder(name="order_flow", start_executor=start, output_from=[approve])
        .add_fan_out_edges(start, branches)
        .add_fan_in_edges(branches, approve)
        .build()
    )


@harness.scenario(
    "graph_resume",
    storages=["memory", "file", "sqlite", "cosmos"],
    faults=("cancel", "crash"),
    oracles=("all",),
    without={"completed-steps-restored": "a superstep that did not end runs as a whole again, by design"},
    shapes=False,
    budget=150,
)
async def graph_resume(durable):
    """Whatever happens to a run, the runs that continue it ship the order."""
    shipped: list[str] = []
    run = await durable.run(functools.partial(order_flow, shipped), 7)
    while run.ending != "returned" or run.requests:
        await durable.quiet()
        run = await durable.resume(run, responses={"approve": "yes"} if run.requests else None)
    assert set(shipped) == {"charge order 7 and reserve order 7: yes"}, shipped
