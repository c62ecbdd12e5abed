"""microsoft/agent-framework #9615 in a TaskGroup: the group of the workflow's own body cancels the save.

As in issue_9615.py, but it is not the framework's sweep that cancels the finished step: the release in which the
sweep came (1.22) is not the first that is affected.
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
    async with asyncio.TaskGroup() as group:
        steps = [group.create_task(done(order)), group.create_task(flaky(order))]
    return [task.result() for task in steps]


@harness.scenario(
    "issue_9615_task_group",
    storages=["memory", "file", "remote", "sqlite"],
    reference="microsoft/agent-framework #9615 in a TaskGroup",
    budget=100,
    affected=">=1.2,<1.24",
    breaks_on=("remote", "sqlite"),
)
async def issue_9615_task_group(durable):
    """A step that completed before its run failed is restored by the resume."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)
