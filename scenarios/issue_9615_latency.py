"""#9615 with sleeps for work: the save sleeps 1 ms, the sibling fails after 5 ms.

Stock asyncio passes it every time, since sleeps keep their deadlines; services do not.
"""

import asyncio

from agent_framework import InMemoryCheckpointStorage, step, workflow

import harness


class SlowStorage(InMemoryCheckpointStorage):
    """Takes 1 ms to save."""

    async def save(self, checkpoint):
        await asyncio.sleep(0.001)
        return await super().save(checkpoint)


@step
async def done(order: int) -> str:
    """Finish at once."""
    return f"charged order {order}"


@step
async def flaky(order: int) -> str:
    """Work 5 ms, and fail the first time."""
    await asyncio.sleep(0.005)
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    """Run both steps side by side."""
    return list(await asyncio.gather(done(order), flaky(order)))


@harness.scenario(
    "issue_9615_latency",
    storages={"slow": lambda _directory: SlowStorage()},
    reference="microsoft/agent-framework #9615",
    affected=">=1.2,<1.24",
)
async def issue_9615_latency(durable):
    """A step that completed before its run failed is restored, however long its save takes."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)
