"""The siblings of a step that failed keep running after the run has ended.

A functional workflow runs two steps side by side; one fails, and the run fails with it. Until 1.21 the other one was
left alone: it has its side effect, and writes its checkpoint, after the caller was told that the run is over. Since
1.22 a run cancels its tasks when it fails.
"""

import asyncio

from agent_framework import step, workflow

import harness


@step
async def send_mail(order: int) -> str:
    """Wait for the server, then send."""
    await harness.point("mail server")
    harness.effect(f"mail for order {order}")
    return f"mailed order {order}"


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
    return list(await asyncio.gather(send_mail(order), flaky(order)))


@harness.scenario(
    "running_siblings",
    storages=["memory"],
    reference="agent-framework-core before 1.22, no public report",
    affected=">=1.2,<1.22",
    oracles=("no-zombies",),
    shapes=False,  # a save that was cancelled in an executor's queue lands later on every release
    budget=200,
)
async def running_siblings(durable):
    """When a run has ended, none of its steps is still running."""
    run = await durable.run(order_flow, 7)
    await durable.quiet()
    await durable.resume(run)
