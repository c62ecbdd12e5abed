"""The observed batch: tracing, debug mode, and the relaxed orders of lanes.

Owns how one batch of ready callbacks runs when someone watches or reorders it; must not know arrivals.

A lane is one task's turns. In a relaxed schedule no turn overtakes a plain callback, plain callbacks keep their
order, on which asyncio's own transports rely, and so do the callbacks of one future, turns among them. A turn that
is held may be overtaken by other plain callbacks.
"""

from __future__ import annotations

import asyncio
import logging
import types
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.model.choice import Key, Place
from harness.model.outcome import Deviated
from harness.model.rung import Rung
from harness.runtime import turns
from harness.runtime.clock import real_time
from harness.runtime.identity import lane_path, path_of
from harness.runtime.ops import Op, caller_site, place_of
from harness.runtime.waits import current_line, raised_line

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

RELAXED = Rung.RELAXED  # to look it up in its class takes as long as a call
NO_RUN = (0, None)
LANE_RANKS = ("in turn", "hold")
# No scheduler may starve a lane for ever: one that was passed over this often runs next.
# High enough that a lane can wait until a parent that yields between births has started dozens of others.
MAX_PASSED_OVER = 1000

_PYTHON_TURNS = {
    getattr(asyncio.tasks._PyTask, name, None)  # type: ignore[attr-defined]
    for name in ("_PyTask__step", "_Task__step", "_PyTask__wakeup", "_Task__wakeup", "_Task__eager_start")
}
# The type of a step of a task of C, which has no public name; filled in when the first one is met.
_steps: set[type] = set()


def turn_task(handle: asyncio.Handle) -> Any:
    """Return the task whose turn ``handle`` is, or None for a plain callback."""
    callback: Any = handle._callback  # type: ignore[attr-defined]
    kind = type(callback)
    if kind in _steps:
        return callback.__self__
    if kind is types.BuiltinMethodType:
        return callback.__self__ if callback.__name__ == "task_wakeup" else None
    if kind is types.MethodType:
        return callback.__self__ if callback.__func__ in _PYTHON_TURNS else None
    if kind.__name__ != "TaskStepMethWrapper":
        return None
    _steps.add(kind)
    return callback.__self__


def run_batch(loop: ControlledLoop) -> None:
    """Run what was ready when the iteration began, with the lanes in the order that the scheduler chooses."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    relaxed = loop.settings.rung is Rung.RELAXED and loop.scheduler is not None
    if relaxed and loop.settings.discipline == "turns":
        turns.run_batch(loop)
        return
    for _ in range(len(ready)):
        if not ready:  # a held turn left the queue
            return
        handle = ready.popleft()
        if handle._cancelled:
            continue
        task = turn_task(handle)
        if relaxed:
            if task is None:
                run_held_turns(loop, handle)
            elif hold_turn(loop, handle, task):
                continue
        run_turn(loop, handle, task)


def run_turn(loop: ControlledLoop, handle: Any, task: Any) -> None:
    """Run one callback."""
    loop.turn += 1
    if loop.tracing:
        run_traced(loop, handle, task)
    else:
        handle._run()


def run_held_turns(loop: ControlledLoop, handle: Any) -> None:
    """Run the held turns that the plain callback ``handle`` must not overtake.

    Both wait for the same future, whose callbacks are called in the order in which they were added.
    """
    args = handle._args
    if not args or not asyncio.isfuture(args[0]):
        return
    for op in [op for op in loop.parked if op.kind == "turn" and op.target._args[:1] == args[:1]]:
        loop.parked.remove(op)
        if not op.target._cancelled:
            if loop.ran is not None:
                loop.ran(Lane(loop, op.owner))
            run_turn(loop, op.target, op.owner)


def run_lanes(loop: ControlledLoop, ready: Any) -> None:
    """Run a batch in which each turn is that of any lane in the run of task turns at the head of the queue.

    Each handle is looked at once and not for each choice, so that one among many lanes costs what one among few does.
    """
    run, last = loop.run_of_turns  # invariant: so many handles at the head of the queue are turns
    if run and (len(ready) < run or ready[run - 1] is not last):  # somebody changed the queue since
        run = 0
    passed = loop.passed_oldest
    draw, answers, asked = loop.draw, loop.answers, loop.asked
    for _ in range(len(ready)):
        if len(ready) < (run or 1):  # somebody took from the queue
            break
        while run < len(ready):
            handle = ready[run]
            if handle._cancelled or (type(handle._callback) not in _steps and turn_task(handle) is None):
                break
            run += 1
        index = 0
        if run > 1 and passed < MAX_PASSED_OVER:
            if draw is None:
                index = loop.choose("lane", [Lane(loop, turn_task(handle)) for handle in islice(ready, run)])
            else:
                index = draw(run)
                answers.append(index)
                asked.append("lane")
        elif run and loop.ran is not None:
            loop.ran(Lane(loop, turn_task(ready[0])))
        if index:
            passed += 1
            loop.rung = RELAXED
            handle = ready[index]
            del ready[index]
        else:
            passed = 0
            handle = ready.popleft()
        if run:
            run -= 1
        if handle._cancelled:
            continue
        loop.turn += 1
        if loop.tracing:
            run_traced(loop, handle, turn_task(handle))
        else:
            handle._run()
    loop.passed_oldest = passed
    loop.run_of_turns = (run, ready[run - 1]) if 0 < run <= len(ready) else NO_RUN


class Lane:
    """An option of a ``lane`` choice point: one task whose next turn is ready."""

    __slots__ = ("loop", "task")

    def __init__(self, loop: ControlledLoop, task: Any) -> None:
        self.loop = loop
        self.task = task

    def __str__(self) -> str:
        return path_of(self.loop, self.task)

    @property
    def key(self) -> Key:
        """Who this is, unique in an execution."""
        return "lane", getattr(self.task, "number", -1)

    @property
    def path(self) -> str:
        """The task's path."""
        return lane_path(self.loop, self.task)

    @property
    def lane(self) -> int:
        """The task's number, or -1 for a foreign one."""
        return getattr(self.task, "number", -1)

    @property
    def place(self) -> Place:
        """Where its next turn begins, the same in every execution."""
        return place_of(self.loop, self.task)

    @property
    def interesting(self) -> bool:
        """Whether the task is one of a storage operation, a failure or a cancellation."""
        return self.task in self.loop.interesting_tasks


def hold_turn(loop: ControlledLoop, handle: Any, task: Any) -> bool:
    """Ask whether this lane waits.

    A held turn is parked until the others have nothing left to do, or until a callback comes that was added to
    the same future later.
    """
    if handle in loop.released:
        loop.released.remove(handle)
        if loop.ran is not None:
            loop.ran(Lane(loop, task))
        return False
    interesting = task in loop.interesting_tasks
    lane = Lane(loop, task)
    if not loop.choose("hold", LANE_RANKS, subject=lane, interesting=interesting):
        return False

    def deliver(op: Op) -> None:
        loop.released.append(op.target)
        loop._ready.append(op.target)  # type: ignore[attr-defined]

    op = Op(loop, "turn", kind="turn", deliver=deliver, target=handle)
    op.owner = task
    op.rank = 1
    loop.parked.append(op)
    loop.needs(Rung.RELAXED)  # here, because an execution may end before the turn comes
    if loop.tracing:
        op.site = current_line(task)
        loop.record(str(lane), "held", op.site)
    return True


def run_traced(loop: ControlledLoop, handle: Any, task: Any) -> None:
    """Run one turn and record who ran and what came of it."""
    number, now_s = loop.turn, loop.now()
    if task is None:
        callback: Any = handle._callback
        name = getattr(callback, "__qualname__", type(callback).__name__)
        loop.record("loop", f"call {name}")
        handle._run()
        return
    lane = path_of(loop, task)
    before = current_line(task)
    mark, asked = len(loop.trace), len(loop.answers)
    handle._run()
    what = "waits"
    where = current_line(task) or before
    if task.done():
        if task.cancelled():
            what = "is cancelled"
        elif (error := task._exception) is not None:
            what = f"raises {type(error).__name__}"
            where = raised_line(error) or before
        else:
            what = "returns"
    loop.enter(loop.entry(lane, what, where, number=number, now_s=now_s), mark)
    deviated = loop.deviated
    for index in range(len(deviated) - 1, -1, -1):
        if deviated[index].choice < asked:
            break
        # it was made in this turn, whose entry stands before it now
        deviated[index] = Deviated(deviated[index].choice, deviated[index].position + 1, True)


def run_batch_in_debug_mode(loop: ControlledLoop) -> None:
    """Run a batch as stock asyncio does in debug mode: slow callbacks are logged, in real seconds."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    for _ in range(len(ready)):
        handle = ready.popleft()
        if handle._cancelled:
            continue
        loop.turn += 1
        loop._current_handle = handle  # type: ignore[attr-defined]
        began = real_time()
        try:
            handle._run()
        finally:
            loop._current_handle = None  # type: ignore[attr-defined]
        took = real_time() - began
        if took >= loop.slow_callback_duration:
            name = asyncio.base_events._format_handle(handle)  # type: ignore[attr-defined]
            logging.getLogger("asyncio").warning("Executing %s took %.3f seconds", name, took)
    handle = None  # a callback's error must not keep its own frame alive


__all__ = ["Lane", "caller_site", "run_batch", "run_batch_in_debug_mode", "turn_task"]
