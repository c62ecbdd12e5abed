"""What is parked: which of it may be delivered next, and its delivery.

Owns the queues that ops wait in; must not know timers, nor who decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.runtime.ops import Op

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# Iterations of a polling program cost real time too: once it has been busy for longer than the loop's
# patience, each iteration advances the clock by this much more than the last one did, so that deadlines come.
BUSY_STEP_S = 1e-3
# A timer that was passed over by this many ops in a row gets nearer with every further op: a program that
# polls by jobs keeps the loop from ever waiting for a deadline.
LONG_STREAK = 1000
# Held ops that so many timers passed over are held no longer.
MAX_PASSED_OVER = 200


def enabled_ops(loop: ControlledLoop) -> list[Op]:
    """Return the parked ops that may be delivered next, by age: a job only when a worker is free for it.

    The queue of an executor is first in, first out, and a worker is busy until its job's result is in: an
    executor with one worker is how programs put functions in order (concurrent.futures.thread._worker).
    """
    parked = loop.parked
    if loop.used_real_io:
        parked = without_successors(parked)
    if not loop.pools:
        return parked
    busy = [0] * len(loop.pools)
    for op in parked:
        if op.pool is not None and op.kind == "done":
            busy[op.pool.number] += 1
    found = []
    for op in parked:
        if op.pool is not None and op.kind == "job":
            busy[op.pool.number] += 1
            if busy[op.pool.number] > op.pool.workers:
                continue
        found.append(op)
    return found


def without_successors(parked: list[Op]) -> list[Op]:
    """Return ``parked`` without the ops that another one of the same source comes before."""
    found, sources = [], set()
    for op in parked:
        if op.source not in sources:
            found.append(op)
        if op.source:
            sources.add(op.source)
    return found


def deliver_op(loop: ControlledLoop, op: Op) -> None:
    """Take ``op`` out of what is parked and let it arrive."""
    loop.parked.remove(op)
    loop.streak += 1
    if loop.streak > LONG_STREAK and loop.followed_at is None:
        loop.offset_s += BUSY_STEP_S
    if loop.deliveries is not None:
        loop.deliveries.append((loop.iteration, op.name, loop.now()))
    if loop.tracing:
        loop.record("loop", f"deliver {op}", op.site)
    if loop.ran is not None and loop.settings.discipline == "ranks" and op.kind != "turn":
        loop.ran(op)
    op.deliver(op)


def deliver_rest(loop: ControlledLoop) -> None:
    """Deliver all other arrivals from outside that are not held: one select of stock asyncio brings them all."""
    for op in [op for op in loop.parked if op.kind == "arrival" and not op.rank]:
        deliver_op(loop, op)


def deliver_overdue(loop: ControlledLoop, when: float) -> bool:
    """Deliver the held answers from outside that cannot be held until ``when``; return whether there was one."""
    overdue = [op for op in loop.parked if op.until <= when]
    for op in overdue:
        deliver_op(loop, op)
    return bool(overdue)


def end_starvation(loop: ControlledLoop) -> None:
    """Put held ops in turn when timers have passed them over for too long: a heartbeat never ends."""
    if not any(op.rank for op in loop.parked):
        loop.passed_held = 0
        return
    loop.passed_held += 1
    if loop.passed_held > MAX_PASSED_OVER:
        loop.passed_held = 0
        for op in loop.parked:
            op.rank = 0
