"""The batch of the ``turns`` discipline: any ready lane runs next, or the first plain callback does.

Owns the one relaxed order that leaves nothing out, for exhaustive search; must not know arrivals.

A turn never overtakes a plain callback and plain callbacks keep their order, as in ``lanes``; but a turn may be
overtaken by a callback, and by what arrives later, as a held turn is in the ``ranks`` discipline. Without that the
yield form of #9615 would be out of reach, and a search that is complete within its options would certify a program
that is not correct.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.model.rung import Rung
from harness.runtime import arrivals, lanes
from harness.runtime.ops import Op

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop


class Callback:
    """The option of a ``lane`` choice point that runs the first plain callback before the turns ahead of it."""

    __slots__ = ("handle",)

    def __init__(self, handle: asyncio.Handle) -> None:
        self.handle = handle

    def __str__(self) -> str:
        callback: Any = self.handle._callback  # type: ignore[attr-defined]
        return f"call {getattr(callback, '__qualname__', type(callback).__name__)}"


def run_batch(loop: ControlledLoop) -> None:
    """Run as many callbacks as were ready when the iteration began, in the order that the scheduler chooses."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    for left in range(len(ready), 0, -1):
        loop.batch_left = left
        while ready and ready[0]._cancelled:
            ready.popleft()
        if not ready:
            break
        choose_next(loop, ready)
        if loop.on_turn is not None:
            loop.on_turn(ready[0])
        handle = ready.popleft()
        loop.turn += 1
        if loop.tracing:
            lanes.run_traced(loop, handle, lanes.turn_task(handle))
        else:
            handle._run()
    loop.batch_left = 0


def choose_next(loop: ControlledLoop, ready: Any) -> None:
    """Move what the scheduler chooses to the front of the queue.

    While only turns are ready, all of them may wait, so ops and timers may arrive before them too.
    """
    while True:
        options, places = _options(loop, ready)
        first = ready[0]
        passed = loop.passed_over
        if len(options) < 2 or passed.get(first, 0) >= lanes.MAX_PASSED_OVER:
            return
        index = loop.choose("lane", options)
        if index:
            loop.needs(Rung.RELAXED)
        if index < len(places):
            break
        arrivals.deliver_one(loop, options[index])
    for handle in islice(ready, places[index]):
        passed[handle] = passed.get(handle, 0) + 1
    handle = ready[places[index]]
    del ready[places[index]]
    ready.appendleft(handle)


def _options(loop: ControlledLoop, ready: Any) -> tuple[list[Any], list[int]]:
    """Return what may happen next, and where in the queue the first of these are; the rest may arrive."""
    options: list[Any] = []
    places: list[int] = []
    for place, handle in enumerate(ready):
        if handle._cancelled:
            continue
        task = lanes.turn_task(handle)
        places.append(place)
        options.append(Callback(handle) if task is None else lanes.Lane(loop, task))
        if task is None:
            return options, places
    if loop.parked or loop._scheduled:  # type: ignore[attr-defined]
        options += arrivals.deliverable(loop)
    return options, places


def only_wakes(op: Any) -> bool:
    """Return whether delivering ``op`` does nothing but make the next turn of its task ready.

    So it is with a point whose future only its task holds: nobody can ask whether it is done, and a cancellation
    reaches the task the same way before the delivery and after it. In a relaxed schedule the turn can wait as long
    as the op could, so delivering it at once leaves nothing out.
    """
    if not isinstance(op, Op) or op.kind != "point" or op.owner is None:
        return False
    future: Any = op.target
    task: Any = op.owner
    callbacks = future._callbacks or ()
    if future.done() or task._fut_waiter is not future or len(callbacks) != 1:
        return False
    # Held by the op, by the task, by the iterator that the coroutine awaits, and here twice.
    return sys.getrefcount(future) <= 5


def only_counts(handle: asyncio.Handle, *, last: bool = False) -> bool:
    """Return whether a callback is that of a child of ``gather`` that ended well, while others have not ended.

    It adds one to a counter that nobody else reads (asyncio.tasks.gather), so it commutes with every turn. last:
    also the callback that wakes the parent, which commutes with the turns of other tasks that share nothing.
    """
    callback: Any = handle._callback  # type: ignore[attr-defined]
    code = getattr(callback, "__code__", None)
    if code is None or code.co_name != "_done_callback" or code not in asyncio.gather.__code__.co_consts:
        return False
    cells = zip(code.co_freevars, callback.__closure__, strict=True)
    variables = {name: cell.cell_contents for name, cell in cells}
    (child,) = handle._args
    if child.cancelled() or child._exception is not None:
        return False
    return last or bool(variables["nfinished"] + 1 < variables["nfuts"])


def only_releases(handle: asyncio.Handle) -> bool:
    """Return whether a callback is that of a future in ``asyncio.wait`` without a timeout.

    It counts, and wakes the one task that waits (asyncio.tasks._wait). Nobody else holds what it writes, a
    cancellation reaches that task the same way before it and after it, and the turn that it makes ready can wait as
    long as it could.
    """
    callback: Any = handle._callback  # type: ignore[attr-defined]
    code = getattr(callback, "__code__", None)
    if code is None or code.co_name != "_on_completion" or code not in _WAIT.co_consts:
        return False
    cells = zip(code.co_freevars, callback.__closure__, strict=True)
    variables = {name: cell.cell_contents for name, cell in cells}
    waiter = variables["waiter"]
    return variables["timeout_handle"] is None and (waiter.done() or len(waiter._callbacks or ()) == 1)


_WAIT = asyncio.tasks._wait.__code__  # type: ignore[attr-defined]
