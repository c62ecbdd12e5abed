"""A step that the body no longer awaits saves a checkpoint after its run ended.

In a first-completed race the body returns with the winner; the loser is neither cancelled nor drained. Its
save comes after the run's final one and is the latest then: it lacks the message, which the end of the run dropped.
"""

import asyncio

from agent_framework import step, workflow

import harness


@step
async def cached(order: int) -> str:
    """Answer at once."""
    return f"cached price of order {order}"


@step
async def fresh(order: int) -> str:
    """Ask a service."""
    await harness.point("call")
    return f"fresh price of order {order}"


@workflow
async def price_flow(order: int) -> str:
    """Return the answer that is there first."""
    answers = [asyncio.create_task(cached(order)), asyncio.create_task(fresh(order))]
    done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
    return next(answer for answer in answers if answer in done).result()


COMMON = {
    "budget": 100,
    "storages": ["memory", "file", "remote", "sqlite"],
    "reference": "straggler",
    "affected": ">=1.2,<1.24",
}


@harness.scenario("straggler", oracles=("no-zombies",), **COMMON)
async def straggler(durable):
    """When a run has returned, nothing of it goes on."""
    await durable.run(price_flow, 7)


@harness.scenario("straggler_next_run", oracles=("run-isolation",), **COMMON)
async def straggler_next_run(durable):
    """A run is resumed from its own checkpoint, not from one that an earlier run left."""
    first = await durable.run(price_flow, 7)
    second = await durable.run(price_flow, 8, instance=first.instance)
    await durable.quiet()
    await durable.resume(second)


@harness.scenario("straggler_resume", oracles=("restore-complete",), **{**COMMON, "affected": ">=1.20,<1.24"})
async def straggler_resume(durable):
    """A run that returned ends the same when it is resumed."""
    run = await durable.run(price_flow, 7)
    await durable.quiet()
    await durable.resume(run)
