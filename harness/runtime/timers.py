"""Timers: which of them may come next, which are due, and their delivery with the clock.

Owns the heap of timers and what virtual time does when one is delivered; must not know ops that are parked.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from typing import TYPE_CHECKING, Any

from harness.model.rung import Rung
from harness.runtime.ops import ControlledTimer

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

WAKE_UP_S = 5e-5
# The deadline of ``asyncio.sleep(math.inf)`` and of anyio's scopes without a timeout.
NEVER = math.inf
_MIN_TIMERS: int = asyncio.base_events._MIN_SCHEDULED_TIMER_HANDLES  # type: ignore[attr-defined]
_CANCELLED_FRACTION: float = asyncio.base_events._MIN_CANCELLED_TIMER_HANDLES_FRACTION  # type: ignore[attr-defined]


def wake_up_time(loop: ControlledLoop, timer: ControlledTimer) -> float:
    """Return when stock asyncio would wake for ``timer``; timers due before that arrive together with it.

    epoll rounds a timeout up to the millisecond (selectors.EpollSelector.select), and waking takes a while.
    """
    now_s = loop.now()
    return now_s + math.ceil((timer._when - now_s) * 1000) / 1000 + WAKE_UP_S


def next_timer(loop: ControlledLoop) -> ControlledTimer | None:
    """Return the timer that a quiet loop delivers next: the lowest rank, then the earliest deadline."""
    timers: list[ControlledTimer] = loop._scheduled  # type: ignore[attr-defined]
    if not timers:
        return None
    if not loop.held_timers:
        return first_timer(timers)
    loop.held_timers = [timer for timer in loop.held_timers if timer._scheduled and not timer._cancelled]
    return min(enabled_timers(loop), key=lambda timer: timer.rank, default=None)


def first_timer(timers: list[ControlledTimer]) -> ControlledTimer | None:
    """Return the timer that the heap gives out first, cancelled ones and those that never come left out, or None."""
    if timers and timers[0]._cancelled:
        timers = list(timers)
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)
    return timers[0] if timers and timers[0]._when < NEVER else None


def enabled_timers(loop: ControlledLoop) -> list[ControlledTimer]:
    """Return the timers that may be delivered now, by deadline.

    Rung exact: only the earliest. From latency on: sleeps in any order, other timers by deadline.
    """
    timers: list[ControlledTimer] = loop._scheduled  # type: ignore[attr-defined]
    first = first_timer(timers)
    if first is None:
        return []
    if loop.settings.rung < Rung.LATENCY or len(timers) == 1:
        return [first]
    found: list[ControlledTimer] = []
    met_deadline = False
    for timer in sorted(timers, key=lambda timer: (timer is not first, timer._when, timer.number)):
        if timer._cancelled or timer._when >= NEVER:
            continue
        if timer.sleep or not met_deadline:
            found.append(timer)
        met_deadline = met_deadline or not timer.sleep
    return found


def drop_cancelled_timers(loop: ControlledLoop) -> None:
    """Remove cancelled timers from the head of the heap, or all when they are many, as stock asyncio does.

    Exactly when it does: the layout of the heap decides the order of timers with one deadline.
    """
    timers: Any = loop._scheduled  # type: ignore[attr-defined]
    cancelled: int = loop._timer_cancelled_count  # type: ignore[attr-defined]
    if len(timers) > _MIN_TIMERS and cancelled > len(timers) * _CANCELLED_FRACTION:
        for timer in timers:
            timer._scheduled = timer._scheduled and not timer._cancelled
        loop._scheduled = [timer for timer in timers if not timer._cancelled]  # type: ignore[attr-defined]
        heapq.heapify(loop._scheduled)  # type: ignore[attr-defined]
        loop._timer_cancelled_count = 0  # type: ignore[attr-defined]
        return
    while timers and timers[0]._cancelled:
        loop._timer_cancelled_count -= 1  # type: ignore[attr-defined]
        heapq.heappop(timers)._scheduled = False


def deliver_timer(loop: ControlledLoop, timer: ControlledTimer) -> None:
    """Move the clock and put ``timer`` in the ready queue, with all timers of exactly its deadline."""
    timers: Any = loop._scheduled  # type: ignore[attr-defined]
    while timers[0]._cancelled and timers[0] is not timer:
        release_timer(loop, heapq.heappop(timers))
    if timer is timers[0]:
        heapq.heappop(timers)
        loop.advance_to(timer._when)
    else:
        overtake(loop, timer)
    release_timer(loop, timer)
    while timers and timers[0]._when == timer._when and not timers[0].rank:
        release_timer(loop, heapq.heappop(timers))


def release_timer(loop: ControlledLoop, timer: ControlledTimer) -> None:
    """Append a timer that left the heap to the ready queue."""
    timer._scheduled = False
    loop.streak = 0
    if loop.deliveries is not None:
        loop.deliveries.append((loop.iteration, "", loop.now()))
    if loop.tracing and not timer._cancelled:
        loop.record("loop", f"deliver {timer}", timer.site)
    if loop.ran is not None and loop.settings.discipline == "ranks" and not timer._cancelled:
        loop.ran(timer)
    loop._ready.append(timer)  # type: ignore[attr-defined]


def overtake(loop: ControlledLoop, timer: ControlledTimer) -> None:
    """Take a timer that is not the earliest out of the heap, and note which sleeps it assumes to be work."""
    timers: Any = loop._scheduled  # type: ignore[attr-defined]
    timers.remove(timer)
    heapq.heapify(timers)
    # Deadlines that are no sleeps hold the clock back: it never passes one that was not delivered.
    loop.advance_to(min([timer._when, *(other._when for other in timers if not other.sleep and not other._cancelled)]))
    passed = [other for other in timers if other._when < timer._when and not other._cancelled]
    if passed:
        loop.needs(Rung.LATENCY)
    if loop.tracing:
        loop.inversions.extend((describe(timer), describe(other)) for other in passed)


def describe(timer: ControlledTimer) -> str:
    """Name a timer with its source line."""
    return f"{timer} at {timer.site}" if timer.site else str(timer)


def any_sleep_may_wait(loop: ControlledLoop) -> bool:
    """Return whether a sleep may end long after its deadline without being held."""
    settings = loop.settings
    return settings.discipline == "turns" and settings.rung >= Rung.LATENCY and loop.scheduler is not None


def due_timers(loop: ControlledLoop) -> list[ControlledTimer]:
    """Return the timers that stock asyncio would not leave behind now, by deadline.

    From latency on a held sleep stands for work that takes longer, so its deadline may pass; in the discipline
    ``turns`` that is so for every sleep, and to let it in when it is due is the default of a choice.
    """
    timers: list[ControlledTimer] = loop._scheduled  # type: ignore[attr-defined]
    if not timers:
        return []
    end_s = loop.now() + loop._clock_resolution
    if timers[0]._when >= end_s:
        return []
    any_may_wait = any_sleep_may_wait(loop)
    if loop.settings.rung < Rung.LATENCY or not (loop.held_timers or any_may_wait):
        return timers[:1]
    passed = [timer for timer in timers if timer._when < end_s and not timer._cancelled]
    passed.sort(key=lambda timer: timer._when)
    starved = loop.busy > loop.settings.patience
    due = [timer for timer in passed if starved or not (timer.sleep and (any_may_wait or timer.rank))]
    if len(due) < len(passed) and not any_may_wait:
        loop.needs(Rung.LATENCY)
    return due


def deliver_due(loop: ControlledLoop) -> None:
    """Deliver the timers whose deadline has passed, as stock asyncio does in each iteration."""
    while due := due_timers(loop):
        deliver_timer(loop, due[0])
