"""Who waits for what: the wait graph of a loop, as text.

Owns the reading of suspended coroutines; must not know why the loop stopped.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from typing import TYPE_CHECKING, Any

from harness.runtime.identity import keep_hashes, path_of
from harness.runtime.ops import is_plumbing

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop


# Where asyncio keeps the tasks of all loops, below the weak references; from 3.14 on, C code has a list of its own.
_REGISTRIES: tuple[Any, ...] = ()
if sys.version_info < (3, 14):
    _REGISTRIES = tuple(
        getattr(registry, "data", registry)
        for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
        if (registry := getattr(asyncio.tasks, name, None)) is not None
    )


def live_tasks(loop: Any) -> list[Any]:
    """Return the tasks of ``loop`` that are not done, oldest first."""
    if _REGISTRIES and not any(_REGISTRIES):
        return []  # asking asyncio takes a tenth of a short execution
    return sorted(asyncio.all_tasks(loop), key=lambda task: getattr(task, "number", 1 << 60))


keep_hashes(live_tasks)


def frames_of(task: Any) -> list[Any]:
    """Return the frames of a suspended task, outermost first."""
    frames = []
    awaited = None if task.done() else task.get_coro()
    for _ in range(200):
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        frame = frame or getattr(awaited, "ag_frame", None)
        if frame is None:
            break
        frames.append(frame)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return frames


def current_line(task: Any) -> str:
    """Return ``file:line`` of the innermost frame of ``task`` that is not asyncio's or ours, or ""."""
    for frame in reversed(frames_of(task)):
        if not is_plumbing(frame.f_globals.get("__name__", "")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return ""


def raised_line(error: BaseException) -> str:
    """Return ``file:line`` of the innermost frame of a traceback that is not asyncio's or ours, or ""."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not is_plumbing(frame.f_globals.get("__name__", "")):
            found = f"{frame.f_code.co_filename}:{line}"
    return found


def waits_for(loop: ControlledLoop, task: Any) -> str:
    """Say in a few words what ``task`` waits for."""
    waiter = getattr(task, "_fut_waiter", None)
    if waiter is None:
        return "its next turn"
    if isinstance(waiter, asyncio.Task):
        return f"task {path_of(loop, waiter)}"
    children = getattr(waiter, "_children", None)
    if children:
        names = ", ".join(path_of(loop, child) for child in children if not child.done())
        return f"gather of {names or 'finished tasks'}"
    for op in loop.parked:
        if op.target is waiter:
            return f"op {op}"
    frames = frames_of(task)
    inner = frames[-1].f_code if frames else None
    if inner is not None and "asyncio" in inner.co_filename:
        return f"asyncio {inner.co_qualname}"
    return f"a {type(waiter).__name__} that nothing completes"


def describe_waits(loop: ControlledLoop) -> str:
    """Return the wait graph, one line per task, at most 40 lines."""
    lines = []
    for task in live_tasks(loop):
        site = current_line(task)
        lines.append(f"  {path_of(loop, task)} waits for {waits_for(loop, task)}" + (f" at {site}" if site else ""))
    lines.extend(f"  {op} is parked" for op in loop.parked)
    lines.extend(f"  thread {thread.name} is alive" for thread in loop.foreign_threads())
    if len(lines) > 40:
        lines[39:] = [f"  ... and {len(lines) - 39} more"]
    return "\n".join(lines) or "  no task is left"
