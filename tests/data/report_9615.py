"""The program of the report, as a user would save it: no harness in it."""

import asyncio

from agent_framework import InMemoryCheckpointStorage, step, workflow

calls = {"done": 0, "flaky": 0}


class RemoteStorage(InMemoryCheckpointStorage):
    async def save(self, checkpoint):
        await asyncio.sleep(0.05)  # a network round trip
        return await super().save(checkpoint)


@step
async def done(order: int) -> str:
    calls["done"] += 1
    return f"charged order {order}"


@step
async def flaky(order: int) -> str:
    calls["flaky"] += 1
    if calls["flaky"] == 1:
        raise RuntimeError("service unavailable")
    return f"shipped order {order}"


@workflow
async def order_flow(order: int) -> list[str]:
    return list(await asyncio.gather(done(order), flaky(order)))


async def main() -> None:
    storage = RemoteStorage()
    try:
        await order_flow.build(checkpoint_storage=storage).run(7)
    except RuntimeError as error:
        print("first run failed:", error)
    latest = await storage.get_latest(workflow_name="order_flow")
    print("checkpoint after the failure:", "none" if latest is None else "one")
    resumed = order_flow.build(checkpoint_storage=storage)
    if latest is None:
        result = await resumed.run(7)
    else:
        result = await resumed.run(checkpoint_id=latest.checkpoint_id)
    print("resumed:", result.get_outputs()[0])
    print("done was executed", calls["done"], "times")


if __name__ == "__main__":
    asyncio.run(main())
