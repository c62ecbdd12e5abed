"""A storage that calls the last write the latest gives back the older of two checkpoints.

Two parallel steps save {a} and {a, b}. When {a} is written last, it is the latest, and b is executed again on
resume, though neither step and neither save failed: the run ended later for another reason.
"""

import asyncio

from agent_framework import step, workflow

import harness


@step
async def reserve(order: int) -> str:
    """Finish at once."""
    return f"reserved order {order}"


@step
async def charge(order: int) -> str:
    """Finish at once."""
    return f"charged order {order}"


@step
async def ship(order: int) -> str:
    """Fail the first time."""
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    """Run two steps side by side, and one after them."""
    done = await asyncio.gather(reserve(order), charge(order))
    return [*done, await ship(order)]


COMMON = {
    "budget": 100,
    "storages": ["memory", "file", "remote", "sqlite", "write-order"],
    "reference": "write order",
    "affected": ">=1.2,<1.24",
    "breaks_on": ("write-order",),
}


@harness.scenario("write_order", **COMMON)
async def write_order(durable):
    """Steps that completed and were saved are restored, in whatever order their saves were written."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)


@harness.scenario("write_order_latest", oracles=("latest-is-maximal",), **COMMON)
async def write_order_latest(durable):
    """The latest checkpoint holds every step that any checkpoint of the run holds."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)
