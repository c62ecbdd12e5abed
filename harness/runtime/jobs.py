"""Executor jobs: functions that would run on another thread, run inline when they are delivered.

Owns the two ops of a job, its run and its completion, and the order of jobs that share one thread; must not know
which executor or library was meant.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from harness.runtime import external
from harness.runtime.ops import Op, OpKind

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop


def runs_for_real(loop: ControlledLoop, executor: Any) -> bool:
    """Return whether a job goes to a real executor: real I/O is allowed, or it is no thread pool."""
    loop._check_closed()  # type: ignore[attr-defined]
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


class Worker:
    """The one worker thread of a library: its jobs run in the order of submission, and so do its answers arrive.

    Only the oldest job and the oldest answer are parked, so that no schedule reverses what a queue keeps in order;
    the second job may still run before the answer of the first is in.
    """

    def __init__(self, loop: ControlledLoop) -> None:
        self._loop = loop
        self._jobs: deque[tuple[str, Callable[[], Any], asyncio.Future[Any] | None, Any]] = deque()
        self._answers: deque[tuple[str, Any, asyncio.Future[Any], Any]] = deque()

    def submit(self, func: Callable[[], Any], *, name: str, future: asyncio.Future[Any] | None) -> None:
        """Queue ``func``; ``future`` gets its result, or nobody does."""
        self._jobs.append((f"job:{name}", func, future, asyncio.current_task(self._loop)))
        if len(self._jobs) == 1:
            self._park(self._jobs[0][0], owner=self._jobs[0][3], kind="job", deliver=self._run)

    def _run(self, _op: Op) -> None:
        name, func, future, owner = self._jobs.popleft()
        outcome = run_inline(self._loop, func, ())
        if self._jobs:
            self._park(self._jobs[0][0], owner=self._jobs[0][3], kind="job", deliver=self._run)
        if future is None or future.done():
            return
        self._answers.append((f"{name}.done", outcome, future, owner))
        if len(self._answers) == 1:
            self._park(f"{name}.done", owner=owner, kind="done", deliver=self._answer)

    def _answer(self, _op: Op) -> None:
        _, (result, error), future, _ = self._answers.popleft()
        if self._answers:
            self._park(self._answers[0][0], owner=self._answers[0][3], kind="done", deliver=self._answer)
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def _park(self, name: str, *, owner: Any, kind: OpKind, deliver: Callable[[Op], None]) -> None:
        op = Op(self._loop, name, kind=kind, deliver=deliver)
        op.owner = owner  # it may be parked by the delivery of the one before
        op.interesting = kind == "job" and owner in self._loop.interesting_tasks
        self._loop.park_op(op)


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
