"""microsoft/agent-framework #9615: a finished step is executed again after its sibling failed.

One of two parallel steps finishes and awaits the save of its checkpoint; the other raises during that
await; the failure path cancels the save; the resumed run executes the finished step again.
"""

import asyncio

from agent_framework import step, workflow

import harness


@step
async def done(order: int) -> str:
    """Finish at once."""
    return f"charged order {order}"


@step
async def flaky(order: int) -> str:
    """Call a service that fails the first time."""
    await harness.point("call")
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    """Run both steps side by side."""
    return list(await asyncio.gather(done(order), flaky(order)))


@harness.scenario(
    "issue_9615",
    storages=["memory", "file", "remote", "sqlite", "cosmos"],
    reference="microsoft/agent-framework #9615",
    affected=">=1.2,<1.24",
    breaks_on=("remote", "sqlite", "cosmos"),
    variants=("issue_9615_failures",),
)
async def issue_9615(durable):
    """A step that completed before its run failed is restored by the resume."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)
