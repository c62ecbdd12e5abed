"""microsoft/agent-framework #7647, PR #8569: two steps save at once, and both checkpoints name the same parent.

The head of the chain is read before the awaited save and written after it. A storage whose save never yields
does not show it; one yield does.
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


@workflow
async def order_flow(order: int) -> list[str]:
    """Run both steps side by side."""
    return list(await asyncio.gather(reserve(order), charge(order)))


@harness.scenario(
    "issue_7647",
    storages=["memory", "file", "remote", "sqlite", "write-order"],
    reference="microsoft/agent-framework #7647, PR #8569",
    budget=100,
    affected=">=1.2,<1.24",
    breaks_on=("file", "remote", "sqlite", "write-order"),
    oracles=("linear-lineage",),
)
async def issue_7647(durable):
    """The checkpoints of a run form one chain."""
    await durable.run(order_flow, 7)
