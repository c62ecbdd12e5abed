"""microsoft/agent-framework #9615 as a plain program: a run, the failure of a sibling, and a resume.

Owns the workflow and its storage; must not know a tool. The steps stand at module level, since the framework
identifies concurrent steps by their place.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agent_framework import InMemoryCheckpointStorage, step, workflow

Wait = Callable[[str], Awaitable[Any]]


class Storage(InMemoryCheckpointStorage):
    """Waits in each save, before it takes effect."""

    def __init__(self, wait: Wait | None) -> None:
        super().__init__()
        self.wait = wait

    async def save(self, checkpoint: Any) -> Any:
        """Wait, and save."""
        if self.wait is not None:
            await self.wait("save")
        return await super().save(checkpoint)


class Execution:
    """What happened in the execution that runs now."""

    executed: list[str]
    in_call: Wait | None


now = Execution()


@step
async def done(order: int) -> str:
    """Finish at once."""
    now.executed.append("done")
    return f"charged order {order}"


@step
async def flaky(order: int) -> str:
    """Call a service that fails the first time."""
    if now.in_call is not None:
        await now.in_call("call")
    now.executed.append("flaky")
    if now.executed.count("flaky") == 1:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    """Run both steps side by side."""
    return list(await asyncio.gather(done(order), flaky(order)))


def issue_9615(*, in_save: Wait | None, in_call: Wait | None) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return the program. in_save: what a save waits for. in_call: what the sibling waits for before it fails."""

    async def program() -> None:
        now.executed, now.in_call = [], in_call
        storage = Storage(in_save)
        with contextlib.suppress(RuntimeError):
            await order_flow.build().run(7, checkpoint_storage=storage)
        latest = await storage.get_latest(workflow_name="order_flow")
        start = {"message": 7} if latest is None else {"checkpoint_id": latest.checkpoint_id}
        await order_flow.build().run(**start, checkpoint_storage=storage)
        assert now.executed.count("done") == 1, f"a completed step was executed again: {now.executed}"

    return program
