"""Executor jobs: functions that would run on another thread, run inline when they are delivered.

Owns the two ops of a job, its run and its completion; must not know which executor was meant.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from harness.runtime import external
from harness.runtime.ops import Op

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop


def runs_for_real(loop: ControlledLoop, executor: Any) -> bool:
    """Return whether a job goes to a real executor: real I/O is allowed, or it is no thread pool."""
    loop._check_closed()  # type: ignore[attr-defined]
    if executor is None:
        loop._check_default_executor()  # type: ignore[attr-defined]
    if loop.settings.allow_real_io:
        loop.used_real_io = True
        return True
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        return False
    external.enter_outside(loop, f"loop.run_in_executor({type(executor).__name__})")
    return True


def park_job(loop: ControlledLoop, func: Callable[..., Any], args: tuple[Any, ...]) -> asyncio.Future[Any]:
    """Park ``func(*args)`` and return the future of its result.

    A job that was submitted runs even when its future is cancelled: a free worker would have begun it.
    """
    future = loop.create_future()
    name = f"job:{getattr(func, '__name__', type(func).__name__)}"

    def run(op: Op) -> None:
        outcome = run_inline(loop, func, args)
        if future.cancelled():
            return
        # The answer comes back later than the work was done, on a path of its own.
        done = Op(loop, f"{name}.done", kind="done", deliver=complete, target=outcome)
        done.owner = op.owner
        loop.park_op(done)

    def complete(op: Op) -> None:
        if future.done():
            return
        result, error = op.target
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    loop.park_op(Op(loop, name, kind="job", deliver=run))
    return future


def run_inline(loop: ControlledLoop, func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """Run a job as on a thread of its own: no running loop, an empty context. Returns (result, error)."""
    asyncio._set_running_loop(None)
    try:
        return contextvars.Context().run(func, *args), None
    except (SystemExit, KeyboardInterrupt):
        raise
    except Exception as error:
        if isinstance(error, StopIteration):
            error = RuntimeError("a job raised StopIteration")
        return None, error
    finally:
        asyncio._set_running_loop(loop)
