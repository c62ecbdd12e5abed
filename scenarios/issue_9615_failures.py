"""#9615 with the sibling's failure at each of its await points, as a choice of the search.

What a proof of a fix has to cover: with its answer, at once, and after another call.
"""

import asyncio

from agent_framework import step, workflow

import harness

# Where the sibling fails: at each of its await points.
FAILURES = ("fails with its answer", "fails at once", "fails after another call")


@step
async def done(order: int) -> str:
    """Finish at once."""
    return f"charged order {order}"


@step
async def flaky(order: int) -> str:
    """Call a service that fails the first time: with its answer, or where the search has it fail instead."""
    first = harness.attempt() == 0
    failure = harness.shape("flaky", FAILURES) if first else ""
    if failure == "fails at once":
        raise RuntimeError("service unavailable")
    await harness.point("call")
    if failure == "fails after another call":
        await harness.point("call")
    if first:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    """Run both steps side by side."""
    return list(await asyncio.gather(done(order), flaky(order)))


@harness.scenario(
    "issue_9615_failures",
    storages=["memory", "file", "remote", "sqlite", "cosmos"],
    reference="microsoft/agent-framework #9615",
    affected=">=1.2,<1.24",
    breaks_on=("remote", "sqlite", "cosmos"),
)
async def issue_9615_failures(durable):
    """A step that completed before its run failed is restored, wherever the sibling failed."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)
