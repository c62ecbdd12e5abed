"""#9615 with a save that yields once: only a relaxed order of tasks shows it.

The sweep that cancels siblings comes about five turns after the failure (agent-framework 1.23.0).
"""

import asyncio

from agent_framework import InMemoryCheckpointStorage, step, workflow

import harness
from harness import Rung


class YieldingStorage(InMemoryCheckpointStorage):
    """Yields once before it saves."""

    async def save(self, checkpoint):
        await asyncio.sleep(0)
        return await super().save(checkpoint)


@step
async def done(order: int) -> str:
    """Finish at once."""
    return f"charged order {order}"


@step
async def flaky(order: int) -> str:
    """Fail the first time, at once."""
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@step
async def slow_flaky(order: int) -> str:
    """Yield twice, then fail the first time."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    """Run both steps side by side."""
    return list(await asyncio.gather(done(order), flaky(order)))


@workflow
async def slow_order_flow(order: int) -> list[str]:
    """Run both steps side by side; the failure comes two turns later."""
    return list(await asyncio.gather(done(order), slow_flaky(order)))


STORAGES = {"yielding": lambda _directory: YieldingStorage()}
COMMON = {
    "reference": "microsoft/agent-framework #9615",
    "affected": ">=1.2,<1.24",
    "rung": Rung.RELAXED,
    "shapes": False,
}


@harness.scenario("issue_9615_yield", storages=STORAGES, **COMMON)
async def issue_9615_yield(durable):
    """A step that completed before its run failed is restored, in any order of tasks."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)


@harness.scenario("issue_9615_yield_twice", storages=STORAGES, **COMMON)
async def issue_9615_yield_twice(durable):
    """The same, with a sibling that yields twice before it fails."""
    run = await durable.run(slow_order_flow, 7)
    await durable.resume(run)
