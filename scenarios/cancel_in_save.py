"""A run is cancelled, by a timeout say, while it saves.

The cancellation takes the save with it. The step that had completed is executed again on resume; at a pause, the
caller has the request already, and no checkpoint knows of it.
"""

from agent_framework import RunContext, step, workflow

import harness


@step
async def charge(order: int) -> str:
    """Charge a card, which must happen once."""
    return f"charged order {order}"


@workflow
async def order_flow(order: int) -> str:
    """Run one step."""
    return await charge(order)


@workflow
async def approval_flow(order: int, ctx: RunContext) -> str:
    """Ask a human."""
    answer = await ctx.request_info({"order": order}, str, request_id="approve")
    return f"order {order}: {answer}"


COMMON = {
    "budget": 100,
    "reference": "cancel in save",
    "affected": ">=1.2,<1.24",
    "faults": ("cancel",),
}


@harness.scenario(
    "cancel_in_save", storages=["memory", "file", "remote", "sqlite"], breaks_on=("remote", "sqlite"), **COMMON
)
async def cancel_in_save(durable):
    """A step that completed before its run was cancelled is restored."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)


@harness.scenario(
    "cancel_in_save_at_pause",
    storages=["memory", "file", "remote", "sqlite"],
    oracles=("request-durable",),
    breaks_on=("remote", "sqlite"),
    **COMMON,
)
async def cancel_in_save_at_pause(durable):
    """A request that the caller saw is in the latest checkpoint."""
    run = await durable.run(approval_flow, 7, stream=True)
    await durable.resume(run, responses={"approve": "yes"} if run.requests else None)
