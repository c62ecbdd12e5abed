"""The older form of microsoft/agent-framework #9615: the resume overtakes an orphaned save.

Until 1.21 a failed run left its other steps alone. A step that had completed was still saving its checkpoint: a resume
that came before this save landed executed the step again, one that came after it did not. Since 1.22 the run cancels
its tasks and waits for them, and the file storage finishes its own write when it is cancelled, so that the write has
landed when the run ends. For a storage that gives its write up, #9615 itself took the place of this form: see
issue_9615.
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
    "issue_9615_orphaned_save",
    storages=["file"],
    reference="microsoft/agent-framework #9615",
    affected=">=1.2,<1.22",
    shapes=False,
    budget=100,
)
async def issue_9615_orphaned_save(durable):
    """A step that completed before its run failed is restored by a resume that comes at once."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)


@harness.scenario(
    "issue_9615_when_quiet",
    storages=["remote"],
    reference="microsoft/agent-framework #9615",
    affected=">=1.22,<1.24",
    budget=100,
)
async def issue_9615_when_quiet(durable):
    """A step that completed before its run failed is restored by a resume that waits until all is quiet."""
    run = await durable.run(order_flow, 7)
    await durable.quiet()
    await durable.resume(run)
