"""Arrivals: which parked ops and timers are delivered at the start of an iteration, and in which order.

Owns the two disciplines, one rank per op and one index per arrival; must not know what an op stands for.

Default, in both: while something is ready nothing arrives but timers that are due; when the loop is
quiet the oldest parked op arrives, and a timer only when nothing else is parked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from harness.model.choice import EARLY, HOLD
from harness.model.rung import Rung
from harness.runtime import external
from harness.runtime.intake import SLOW_ANSWER_S, collect_now
from harness.runtime.ops import NO_MORE, ControlledTimer, Op
from harness.runtime.parked import BUSY_STEP_S, deliver_op, deliver_overdue, deliver_rest, enabled_ops, end_starvation
from harness.runtime.timers import (
    any_sleep_may_wait,
    deliver_due,
    deliver_timer,
    drop_cancelled_timers,
    due_timers,
    enabled_timers,
    next_timer,
    wake_up_time,
)

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

RANKS = ("in turn", "hold", "early")
# When a program polls, a held op comes in at every so many iterations without a pause.
HELD_TURN = 500
# A program that polls for an answer from outside is slowed down to this, or it would meet the turn limit.
POLL_S = 5e-4


def complete_point(op: Op) -> None:
    """Deliver a point: its future gets None."""
    if not op.target.done():
        op.target.set_result(None)


def alive(op: Op) -> bool:
    """Return whether delivering ``op`` can still have an effect."""
    if op.kind == "arrival":
        return not op.target._cancelled
    return op.kind != "point" or not op.target.done()


def give_rank(loop: ControlledLoop, op: Op | ControlledTimer) -> None:
    """Ask for the rank of an op that was just parked, in the ``ranks`` discipline."""
    if loop.scheduler is None or loop.settings.discipline != "ranks":
        return
    value = loop.choose("hold", RANKS, subject=op, interesting=op.interesting)
    if value == HOLD:
        op.rank = 1
        if isinstance(op, ControlledTimer):
            loop.held_timers.append(op)
    elif value == EARLY:
        op.early = True
        loop.early.append(op)


def arrive(loop: ControlledLoop) -> None:
    """Deliver what arrives at the start of this iteration.

    As in one pass of stock asyncio (base_events.BaseEventLoop._run_once): what is from outside first, then
    timers, and no timer is left behind whose deadline the clock has reached.
    """
    if loop.uncontrolled is not None or ((loop.used_real_io or loop.foreign) and not loop._ready):  # type: ignore[attr-defined]
        collect_now(loop)
    tick(loop)
    if loop.used_real_io and loop.parked:
        deliver_overdue(loop, loop.now())
    while True:
        drop_cancelled_timers(loop)
        if loop._stopping:  # type: ignore[attr-defined]
            deliver_due(loop)
            return
        if loop.scheduler is not None and loop.settings.discipline != "ranks":
            arrive_by_index(loop)
        else:
            arrive_by_rank(loop)
        deliver_due(loop)
        if loop._ready:  # type: ignore[attr-defined]
            return
        loop.quiet()


def begin_run(loop: ControlledLoop) -> None:
    """Deliver what came from outside while the loop did not run: between two runs it was quiet."""
    collect_now(loop)
    deliver_rest(loop)


def is_quiet(loop: ControlledLoop) -> bool:
    """Return whether the loop would sleep: nothing is ready and no deadline has passed.

    Only then may an op arrive that was parked a moment ago: stock asyncio may spend any number of idle
    iterations on it, which nobody notices.
    """
    return not loop._ready and not due_timers(loop)  # type: ignore[attr-defined]


def has_had_time(loop: ControlledLoop, op: Op) -> bool:
    """Return whether ``op`` can have come back while the loop was busy all the time; see ``Op.ripe``."""
    return op.ripe <= loop.iteration


def tick(loop: ControlledLoop) -> None:
    """Count a moment at which something may happen to a run from outside."""
    for countdown in tuple(loop.countdowns):
        countdown.tick()


def arrive_by_rank(loop: ControlledLoop) -> None:
    """Deliver early arrivals; when the loop is quiet, deliver the op of the lowest rank."""
    quiet = is_quiet(loop)
    if loop.early:
        deliver_early(loop, quiet=quiet)
    if not quiet:
        be_fair(loop)
        return
    ready: Any = loop._ready  # type: ignore[attr-defined]
    while not ready:
        if not deliver_next(loop):
            return
        if not ready:
            tick(loop)  # a job is done and nobody knows yet: a moment too


def deliver_early(loop: ControlledLoop, *, quiet: bool) -> None:
    """Deliver the early arrivals, ops before timers; an early timer still waits for earlier deadlines."""
    waiting, loop.early = loop.early, []
    for op in waiting:
        if not isinstance(op, Op):
            continue
        if op not in loop.parked:
            continue
        if op in enabled_ops(loop) and (quiet or has_had_time(loop, op)):
            deliver_op(loop, op)
        else:
            loop.early.append(op)
    for timer in waiting:
        if isinstance(timer, Op) or not timer._scheduled or timer._cancelled:
            continue
        if timer in enabled_timers(loop) and not jumps_ahead(loop, timer):
            deliver_timer(loop, timer)
        else:
            loop.early.append(timer)


def deliver_next(loop: ControlledLoop) -> bool:
    """Deliver what comes next on a quiet loop; return False when there is nothing at all."""
    parked = loop.parked
    if parked and not all(map(alive, parked)):
        parked[:] = filter(alive, parked)
    free = enabled_ops(loop)
    op = min(free, key=lambda op: op.rank) if free else None
    if op is not None and op.rank == 0:
        loop.note_quiet()
        deliver_op(loop, op)
        if op.kind == "arrival":
            deliver_rest(loop)
        return True
    timer = next_timer(loop)
    if timer is None and op is None:
        return False
    if timer is not None or (op is not None and op.kind != "turn"):
        loop.note_quiet()  # a turn that is held and let go is no pause: its task may be polling
    if timer is None or (op is not None and (op.rank, op.number) < (timer.rank, timer.number)):
        assert op is not None
        deliver_op(loop, op)
        return True
    if op is not None and deliver_overdue(loop, timer._when):
        return True
    if (loop.used_real_io or loop.foreign_threads()) and external.wait_for_deadline(loop, timer._when):
        return True
    end_starvation(loop)
    horizon = wake_up_time(loop, timer)
    deliver_timer(loop, timer)
    while timers := loop._scheduled:  # type: ignore[attr-defined]
        head = timers[0]
        if head._when >= horizon or (head.rank and not head._cancelled):
            break
        deliver_timer(loop, head)
    return True


def jumps_ahead(loop: ControlledLoop, timer: ControlledTimer) -> bool:
    """Return whether delivering ``timer`` to a busy loop would move time past what is outside.

    That is an answer which may still come, and a program that polls for one by itself.
    """
    if not loop._outside or timer._when <= (now_s := loop.now()):
        return False
    return timer._when > now_s + SLOW_ANSWER_S or external.outstanding(loop)


def be_fair(loop: ControlledLoop) -> None:
    """Let things in when a polling program keeps the loop from ever being quiet.

    In turn: the oldest op that nobody holds; deadlines, as time passes ever faster; at last what is held.
    """
    loop.busy += 1
    beyond = loop.busy - loop.settings.patience
    if beyond <= 0 or not (loop.parked or loop._scheduled or loop._outside):  # type: ignore[attr-defined]
        return
    outside = loop._outside and (bool(loop.foreign) or external.outstanding(loop))
    if outside:
        collect_now(loop, wait_s=POLL_S)
    ops = [op for op in enabled_ops(loop) if alive(op) and has_had_time(loop, op)]
    chosen = next((op for op in ops if not op.rank or op.kind == "arrival"), None)
    if chosen is None and loop.busy % HELD_TURN == 0:
        chosen = next(iter(ops), None)
    if chosen is not None:
        loop.busy = 0
        deliver_op(loop, chosen)
        return
    if outside:
        external.follow_real_time(loop)
    else:
        loop.offset_s += BUSY_STEP_S * beyond


def arrive_by_index(loop: ControlledLoop) -> None:
    """Ask, arrival after arrival, what is delivered next, until the answer is "no more"."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    horizon = -math.inf
    quiet = is_quiet(loop)
    if quiet:
        loop.note_quiet()
    else:
        be_fair(loop)
    may_wait = any_sleep_may_wait(loop)
    ops_over = False  # within an iteration, nothing from outside comes after a timer
    while True:
        loop.parked[:] = filter(alive, loop.parked)
        ops = [] if ops_over else enabled_ops(loop)
        if not quiet:
            ops = [op for op in ops if has_had_time(loop, op)]
        timers = enabled_timers(loop)
        if timers and loop._outside:
            end_s = min((op.until for op in loop.parked), default=math.inf)
            timers = [timer for timer in timers if timer._when < end_s and not (ready and jumps_ahead(loop, timer))]
        if any(op.rank for op in ops):  # here no scheduler holds an op: it waits until nothing else is left
            last = min(ops, key=lambda op: op.rank)
            ops = [op for op in ops if not op.rank] or ([] if timers or ready else [last])
        if may_wait:
            horizon = max(horizon, loop.now() + loop._clock_resolution)
        enabled: list[Any] = [*ops, *timers]
        if not enabled:
            return
        if ready or not quiet:
            due = bool(timers) and timers[0]._when < horizon
            enabled = [timers[0], NO_MORE, *ops, *timers[1:]] if due else [NO_MORE, *enabled]
        index = loop.choose("arrival", enabled) if len(enabled) > 1 else 0
        option = enabled[index]
        if len(enabled) == 1 and loop.ran is not None:
            loop.ran(option)
        if option is NO_MORE:
            if may_wait and timers and timers[0].sleep and timers[0]._when < loop.now() + loop._clock_resolution:
                loop.needs(Rung.LATENCY)
            return
        if isinstance(option, Op):
            deliver_op(loop, option)
            if not ready:
                tick(loop)
            continue
        if not ready:
            if (loop.used_real_io or loop.foreign_threads()) and external.wait_for_deadline(loop, option._when):
                continue
            horizon = wake_up_time(loop, option)
        ops_over = True
        deliver_timer(loop, option)


def deliverable(loop: ControlledLoop) -> list[Any]:
    """Return the ops and timers that may arrive while turns wait, at a moment at which the loop could be quiet."""
    loop.parked[:] = filter(alive, loop.parked)
    drop_cancelled_timers(loop)
    return [*(op for op in enabled_ops(loop) if not op.rank), *enabled_timers(loop)]


def deliver_one(loop: ControlledLoop, option: Op | ControlledTimer) -> None:
    """Deliver one op or timer."""
    if isinstance(option, Op):
        deliver_op(loop, option)
    else:
        deliver_timer(loop, option)
