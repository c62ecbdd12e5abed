"""A pause never ends: an active step waits for data of a branch that the pause has stopped.

``request_info`` in one branch lets active steps finish and stops every branch at its next step. Here the branch
that would produce is stopped, and the step that consumes is active: each waits for the other.
"""

import asyncio

from agent_framework import RunContext, step, workflow

import harness


@step
async def quote(order: int) -> str:
    """Ask a supplier."""
    await harness.point("call")
    return f"quote for order {order}"


@step(replay_key=lambda quotes: "compare")
async def compare(quotes: asyncio.Queue) -> str:
    """Wait for a quote."""
    return f"compared {await quotes.get()}"


@workflow
async def buying_flow(order: int, ctx: RunContext) -> list[str]:
    """Ask a human while a quote is on its way from one branch to another."""
    quotes: asyncio.Queue = asyncio.Queue()

    async def produce() -> str:
        await harness.point("catalogue")
        quotes.put_nowait(await quote(order))
        return "produced"

    async def approve() -> str:
        await harness.point("rules")
        return await ctx.request_info({"order": order}, str, request_id="approve")

    return list(await asyncio.gather(produce(), compare(quotes), approve()))


@harness.scenario(
    "pause_hang",
    storages=["memory", "file", "remote", "sqlite"],
    reference="pause hang",
    budget=100,
    affected=">=1.22,<1.24",
    oracles=("progress",),
)
async def pause_hang(durable):
    """A run that asks a human pauses, whichever branch came how far."""
    run = await durable.run(buying_flow, 7)
    await durable.resume(run, responses={"approve": "yes"} if run.requests else None)
