"""An error of the storage becomes the error of the step whose result it was to save.

``executor_completed`` was emitted and the result is in the run's cache when ``save`` raises; the body sees the
step raise. A retry loop executes it again in the same run; without one the run fails and its resume does.
"""

from agent_framework import step, workflow

import harness


@step
async def charge(order: int) -> str:
    """Charge a card, which must happen once."""
    harness.effect(f"charge order {order}")
    return f"charged order {order}"


@workflow
async def order_flow(order: int) -> str:
    """Charge, and let an error end the run."""
    return await charge(order)


@workflow
async def patient_order_flow(order: int) -> str:
    """Charge, with a second attempt."""
    try:
        return await charge(order)
    except Exception:
        return f"second attempt: {await charge(order)}"


COMMON = {
    "budget": 100,
    "storages": ["memory", "file", "remote", "sqlite", "write-order"],
    "reference": "save error",
    "affected": ">=1.2,<1.24",
    "faults": ("storage",),
}


@harness.scenario("save_error", **COMMON)
async def save_error(durable):
    """A step that completed is not executed again because its save raised."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)


@harness.scenario("save_error_retry", oracles=("decision-stable",), **COMMON)
async def save_error_retry(durable):
    """A body that saw a completed step raise goes the same way on replay."""
    run = await durable.run(patient_order_flow, 7)
    await durable.resume(run)
