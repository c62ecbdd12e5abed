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
from harness.runtime.ops import Op, Pool
from harness.runtime.parked import enabled_ops

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# ThreadPoolExecutor has five to 32 workers by default, as many as the machine has cores and four more. The
# number here must not depend on the machine.
DEFAULT_WORKERS = 32


def runs_for_real(loop: ControlledLoop, executor: Any) -> bool:
    """Return whether a job goes to a real executor: real I/O is allowed, or it is no thread pool."""
    loop._check_closed()  # type: ignore[attr-defined]
    if executor is None:
        loop._check_default_executor()  # type: ignore[attr-defined]
    if loop.settings.allow_real_io:
        loop.used_real_io = True
        return True
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        if executor is not None and executor._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return False
    external.enter_outside(loop, f"loop.run_in_executor({type(executor).__name__})")
    return True


def pool_of(loop: ControlledLoop, executor: Any) -> Pool:
    """Return the pool that stands for ``executor``, None being the loop's default one."""
    if executor is None:
        executor = loop._default_executor  # type: ignore[attr-defined]
    if executor not in loop.pools:
        workers = DEFAULT_WORKERS if executor is None else executor._max_workers
        loop.pools[executor] = Pool(len(loop.pools), workers)
    return loop.pools[executor]


def park_job(
    loop: ControlledLoop,
    executor: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    *,
    future: asyncio.Future[Any] | None = None,
) -> asyncio.Future[Any]:
    """Park ``func(*args)`` and return the future of its result: ``future``, or a new one.

    A job whose future is cancelled runs all the same if a worker was free for it, which would have begun it; a
    library's own worker, whose future is given, knows of no cancellation and runs whatever was queued.
    """
    queued_by_library = future is not None
    future = loop.create_future() if future is None else future
    name = f"job:{getattr(func, '__name__', type(func).__name__)}"

    def run(op: Op) -> None:
        outcome = run_inline(loop, func, args)
        if future.cancelled():
            return
        # The answer comes back later than the work was done, on a path of its own.
        done = Op(loop, f"{name}.done", kind="done", deliver=complete, target=outcome)
        done.owner = op.owner
        done.pool = op.pool
        loop.park_op(done)

    def complete(op: Op) -> None:
        if future.done():
            return
        result, error = op.target
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def withdraw(_future: asyncio.Future[Any]) -> None:
        if future.cancelled() and job in loop.parked and job not in enabled_ops(loop):
            loop.parked.remove(job)

    job = Op(loop, name, kind="job", deliver=run)
    job.pool = pool_of(loop, executor)
    # The first callback of the future, as in asyncio.futures._chain_future.
    if not queued_by_library:
        future.add_done_callback(withdraw)
    loop.park_op(job)
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
