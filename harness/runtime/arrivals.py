"""Arrivals: which parked ops and timers are delivered at the start of an iteration, and in which order.

Owns the two disciplines, one rank per op and one index per arrival; must not know what an op stands for.

Default, in both: while something is ready nothing arrives but timers that are due; when the loop is
quiet the oldest parked op arrives, and a timer only when nothing else is parked.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from typing import TYPE_CHECKING, Any

from harness.model.choice import EARLY, HOLD
from harness.model.errors import UncontrolledError
from harness.model.rung import Rung
from harness.runtime import external
from harness.runtime.ops import NO_MORE, ControlledTimer, Op
from harness.runtime.waits import describe_waits

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

RANKS = ("in turn", "hold", "early")
# Iterations of a polling program cost real time too: once it has been busy for longer than the loop's
# patience, each iteration advances the clock by this much more than the last one did, so that deadlines come.
BUSY_STEP_S = 1e-3
# A timer that was passed over by this many ops in a row gets nearer with every further op: a program that
# polls by jobs keeps the loop from ever waiting for a deadline.
LONG_STREAK = 1000
# Held ops that so many timers passed over are held no longer; and when a program polls, one comes in at
# every HELD_TURN-th iteration without a pause.
MAX_PASSED_OVER = 200
HELD_TURN = 500
WAKE_UP_S = 5e-5
# The deadline of ``asyncio.sleep(math.inf)`` and of anyio's scopes without a timeout.
NEVER = math.inf
# How long, in virtual seconds, an answer from outside that is there may be held, and how far ahead a deadline may come
# to a busy loop while real I/O is allowed. Every library that talks to a thread or a peer assumes that a
# second is enough; a machine that stops for longer breaks all of them, which is no finding.
SLOW_ANSWER_S = 0.25
# A program that polls for an answer from outside is slowed down to this, or it would meet the turn limit.
POLL_S = 5e-4
_MIN_TIMERS: int = asyncio.base_events._MIN_SCHEDULED_TIMER_HANDLES  # type: ignore[attr-defined]
_CANCELLED_FRACTION: float = asyncio.base_events._MIN_CANCELLED_TIMER_HANDLES_FRACTION  # type: ignore[attr-defined]


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


def jumps_ahead(loop: ControlledLoop, timer: ControlledTimer) -> bool:
    """Return whether delivering ``timer`` to a busy loop would move time past what is outside.

    That is an answer which may still come, and a program that polls for one by itself.
    """
    if not loop._outside or timer._when <= (now_s := loop.now()):
        return False
    return timer._when > now_s + SLOW_ANSWER_S or external.outstanding(loop)


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
    op.deliver(op)


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


def collect_now(loop: ControlledLoop, *, wait_s: float = 0) -> bool:
    """Collect what is there without waiting for more than ``wait_s`` real seconds."""
    selector: Any = loop._selector
    return collect_foreign(loop, selector.select(wait_s) if selector.watching else None)


def collect_foreign(loop: ControlledLoop, events: Any = None) -> bool:
    """Turn callbacks of foreign threads and ``events`` of files into parked ops; return whether any came.

    Files go by number: the order in which the kernel names them is not the same every time.
    """
    if loop.followed_at is not None:
        external.follow_real_time(loop)
    before = len(loop.parked)
    if events:
        collect_files(loop, events)
    while loop.foreign:
        kind, source, handle = loop.foreign.popleft()
        park_handle(loop, handle, name=kind, source=source)
    if loop.uncontrolled is not None:
        error, loop.uncontrolled = loop.uncontrolled, None
        raise UncontrolledError(f"{error}\n{describe_waits(loop)}") from None
    return len(loop.parked) > before


def collect_files(loop: ControlledLoop, events: Any) -> None:
    """Park the callbacks of files that are ready, each once; read the loop's own pipe at once."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    pipe = loop._ssock.fileno()
    own = [event for event in events if event[0].fd == pipe]
    if own:
        loop._read_from_self()  # type: ignore[attr-defined]
    waiting = {op.target for op in loop.parked if op.kind == "arrival"}
    for event in sorted((event for event in events if event not in own), key=lambda event: event[0].fd):
        mark = len(ready)
        loop._process_events([event])  # type: ignore[attr-defined]
        for handle in [ready.pop() for _ in range(len(ready) - mark)][::-1]:
            if handle not in waiting:
                park_handle(loop, handle, name="io", fd=event[0].fd)


def park_handle(loop: ControlledLoop, handle: asyncio.Handle, *, name: str, fd: int = -1, source: int = 0) -> None:
    """Park a callback from outside; delivering it puts it in the ready queue.

    source: the thread that it comes from; what it asks for arrives in the order in which it did.
    A file that is no longer ready when its turn comes is left alone: somebody else has read it.
    """
    turn = loop.turn

    def deliver(op: Op) -> None:
        if fd < 0 or turn == loop.turn or still_ready(loop, fd):
            loop._ready.append(op.target)  # type: ignore[attr-defined]

    callback: Any = handle._callback  # type: ignore[attr-defined]
    callback = getattr(callback, "func", callback)  # a partial stands for its function
    label = getattr(callback, "__qualname__", type(callback).__name__).replace(".<locals>", "")
    op = Op(loop, f"{name}:{label}", kind="arrival", deliver=deliver, target=handle)
    op.until = loop.now() + SLOW_ANSWER_S
    op.source = source
    before = next((other for other in reversed(loop.parked) if source and other.source == source), None)
    loop.park_op(op)
    if before is not None:
        op.rank = max(op.rank, before.rank)


def still_ready(loop: ControlledLoop, fd: int) -> bool:
    """Return whether file ``fd`` is ready now."""
    return any(key.fd == fd for key, _ in loop._selector.select(0))
