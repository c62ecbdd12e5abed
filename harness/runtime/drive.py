"""Runs one coroutine on a fresh loop until it is done.

Owns what ``run_until_complete`` and ``run_forever`` of asyncio do around the iterations, without the checks that a loop
which was just made passes; must not know what an iteration is.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

_stop_when_done: Any = asyncio.base_events._run_until_complete_cb  # type: ignore[attr-defined]


def drive(loop: ControlledLoop, coro: Coroutine[Any, Any, Any]) -> Any:
    """Return what ``coro`` returns, or raise what it raises; nothing runs on ``loop`` before or after.

    Source: Lib/asyncio/base_events.py, BaseEventLoop.run_until_complete and run_forever. Their checks and the calls
    between them cost as much as four turns.
    """
    if loop._debug or loop.settings.allow_real_io or type(coro) is not CoroutineType or asyncio._get_running_loop():
        return loop.run_until_complete(coro)
    task = loop.create_task(coro)
    task._log_destroy_pending = False
    task.add_done_callback(_stop_when_done)
    hooks = sys.get_asyncgen_hooks()
    inner: Any = loop
    try:
        inner._thread_id = threading.get_ident()
        sys.set_asyncgen_hooks(inner._asyncgen_firstiter_hook, inner._asyncgen_finalizer_hook)
        asyncio._set_running_loop(loop)
        while not inner._stopping:
            loop._run_once()
            if task.done() and _only_stops(loop):
                break
    except BaseException:
        if task.done() and not task.cancelled():
            task.exception()  # it is known, and needs no log
        raise
    finally:
        inner._stopping = False
        inner._thread_id = None
        asyncio._set_running_loop(None)
        sys.set_asyncgen_hooks(*hooks)
        task.remove_done_callback(_stop_when_done)
    if not task.done():
        raise RuntimeError("Event loop stopped before Future completed.")
    return task.result()


def _only_stops(loop: ControlledLoop) -> bool:
    """Account for the last iteration when all that it would do is to stop the loop; return whether it was that."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    if len(ready) != 1 or ready[0]._callback is not _stop_when_done or loop.tracing or loop.on_turn is not None:
        return False
    if loop.parked or loop._scheduled or loop.foreign or loop.countdowns or "time" in vars(loop):  # type: ignore[attr-defined]
        return False
    ready.clear()
    loop.iteration += 1
    loop.turn += 1
    return True
