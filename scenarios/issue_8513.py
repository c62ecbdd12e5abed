"""microsoft/agent-framework #8513, PR #8514: of checkpoints with equal timestamps the oldest is the latest.

The clock of this scenario ticks every 15.6 ms, as some systems' do. The in-memory storage takes the first of the
greatest timestamp; the file storage the first in directory order, which is the file system's, so it is left out.
"""

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
    """Run one step after the other."""
    return [await reserve(order), await charge(order)]


@harness.scenario(
    "issue_8513",
    storages=["memory", "sqlite", "write-order"],
    reference="microsoft/agent-framework #8513, PR #8514",
    budget=100,
    affected=">=1.2,<1.24",
    breaks_on=("memory",),
    oracles=("latest-is-maximal",),
    clock="coarse:0.0156",
)
async def issue_8513(durable):
    """The latest checkpoint is the last one of the chain, also when two were made within one tick."""
    await durable.run(order_flow, 7)
