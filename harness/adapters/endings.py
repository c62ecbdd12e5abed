"""How a run may end from outside: at a moment, or when the consumer of its stream leaves.

Owns the faults of a search that end a run, and that it is noted; must not know any framework, nor resumes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from harness.runtime.faults import Countdown, Fate, Moments, crash
from harness.runtime.loop import ControlledLoop

_AT_MOMENTS = {"cancel": ("cancelled", "cancelled twice"), "crash": ("crashed",), "timeout": ("timed out",)}
_AT_EVENTS = {"stream": ("closed", "dropped"), "close": ("closed",), "drop": ("dropped",)}
_GAPS = {"1 moment later": 1, "2 moments later": 2, "4 moments later": 4, "8 moments later": 8}

Forget = Callable[[ControlledLoop], None]


class AnyRun(Protocol):
    """What this module needs to know of a run."""

    number: int
    name: str
    ending: str
    error: BaseException | None
    events: list[Any]


@dataclass(frozen=True, slots=True)
class Leave:
    """When a consumer leaves the stream of its run, and how: ``closed`` or ``dropped`` after so many events."""

    how: str
    after: int


def at_moments(faults: Collection[str]) -> list[str]:
    """Return what ``faults`` let happen to a run at any moment."""
    return [kind for fault in faults for kind in _AT_MOMENTS.get(fault, ())]


def at_events(faults: Collection[str]) -> list[str]:
    """Return how ``faults`` let a consumer leave the stream of a run."""
    return [kind for fault in faults for kind in _AT_EVENTS.get(fault, ())]


async def go_with_fate(
    loop: ControlledLoop,
    run: AnyRun,
    body: Coroutine[Any, Any, None],
    *,
    kinds: Collection[str],
    forget: Forget | None = None,
    began: Callable[[asyncio.Task[None]], None] | None = None,
) -> None:
    """Run ``body`` in a task of its own, to which something may happen at a moment of the search's choice.

    kinds: of ``at_moments``. forget: called when the process "died". began: called with the task.
    Sets the ending of a run that ended from outside.
    """
    fate = Fate(loop, f"run {run.number}", kinds=list(kinds), memory=loop.memory, later=("cancelled twice",))
    over: asyncio.Future[None] = loop.create_future()
    deadline = _Deadline(loop)
    coro: Any = deadline.within(run, body) if "timed out" in kinds else body
    coro.__name__ = "run"
    task = loop.create_task(coro)
    task.add_done_callback(lambda _: finish(over))
    if began is not None:
        began(task)
    fate.begin(_strike(loop, run, fate, task=task, over=over, deadline=deadline, forget=forget))
    try:
        await over
    finally:
        fate.end()
    if run.ending == "crashed":
        return
    if task.cancelled():
        run.ending = "cancelled"
    else:
        task.result()  # raises what is of the harness itself: the run's own errors are data


async def to_its_end(
    run: AnyRun, consume: Callable[[Leave | None], Awaitable[None]], *, kinds: Collection[str] = ()
) -> None:
    """Run to an ending of the program's own, or until the consumer leaves the stream.

    consume: goes through the run, and sets its ``ending`` when the consumer left. kinds: of ``at_events``.
    """
    loop = asyncio.get_running_loop()
    leave: Leave | None = None
    name = f"stream of run {run.number}"
    if kinds and isinstance(loop, ControlledLoop):
        options = Moments(tuple(kinds), loop.memory.get(name, 40))
        chosen = options.decode(loop.choose("fault", options, subject=name, interesting=True))
        leave = None if chosen is None else Leave(*chosen)
        if leave is None:
            loop.streams[name] = run.events
    try:
        await consume(leave)
    except Exception as error:
        run.error = error
        run.ending = "failed"
    else:
        run.ending = run.ending or "returned"


class _Deadline:
    """The ``asyncio.timeout`` under which the caller of a run awaits it; it expires when the search says so.

    It is asyncio's own, so that all is as it is there: the task that awaits the run is cancelled behind what is ready,
    what the run makes of that is its own affair, and only a cancellation that comes out of it is a TimeoutError.
    """

    def __init__(self, loop: ControlledLoop) -> None:
        self._loop = loop
        self._limit: asyncio.Timeout | None = None
        self._due = False

    async def within(self, run: AnyRun, body: Awaitable[None]) -> None:
        """Await ``body`` under the deadline."""
        # a deadline of no time at all has passed before the first turn: that turn is made all the same
        self._limit = asyncio.timeout(0 if self._due else None)
        try:
            async with self._limit:
                await body
        except TimeoutError as error:  # the run's own errors do not come out of ``body``
            run.ending, run.error = "timed out", error

    def expire(self) -> None:
        """Let the time be up, behind what is ready."""
        self._due = True
        if self._limit is not None:
            self._limit.reschedule(self._loop.time())


def _strike(
    loop: ControlledLoop,
    run: AnyRun,
    fate: Fate,
    *,
    task: asyncio.Task[Any],
    over: asyncio.Future[None],
    deadline: _Deadline,
    forget: Forget | None,
) -> Callable[[], None]:
    """Return what happens to ``run`` at the chosen moment. over: ends its wait."""
    if fate.kind == "crashed":

        def die() -> None:
            if over.done():
                return  # it had ended, and its caller will know in this iteration
            run.ending = "crashed"
            note("run.ended", run, how="crashed", error=None, left=[])
            if forget is not None:
                forget(loop)
            crash(loop, over)

        return die
    if fate.kind == "timed out":

        def expire() -> None:
            if task.done():
                return  # its caller is out of the block, and the timer is gone
            note("run.timeout", run)
            deadline.expire()

        return expire
    gap = 0
    if fate.kind == "cancelled twice":
        names = tuple(_GAPS)
        gap = _GAPS[names[loop.choose("fault", names, subject=f"second cancel of run {run.number}")]]

    def cancel() -> None:
        note("run.cancelled", run)
        # As a callback, so that it arrives behind what is ready, where stock asyncio puts what comes from outside.
        loop.call_soon(task.cancel)
        if gap:
            loop.countdowns.append(Countdown(gap, again))

    def again() -> None:
        loop.call_soon(task.cancel)

    return cancel


def note(kind: str, run: AnyRun, **data: Any) -> None:
    """Append a fact about ``run`` to the journal."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        loop.note(kind, run.name, run=run.number, **data)


def finish(over: asyncio.Future[None]) -> None:
    """Let the one who awaits ``over`` go on."""
    if not over.done():
        over.set_result(None)
