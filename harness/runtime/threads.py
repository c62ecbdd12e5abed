"""Foreign threads: which of them may still call back, where they are, and which only wait for work.

Owns the reading of other threads' stacks; must not know the loop that waits for them.
"""

from __future__ import annotations

import queue
import sys
import threading
from concurrent import futures
from concurrent.futures import thread as pools
from types import CodeType, FrameType
from typing import Any

from harness.runtime.ops import is_plumbing

_POOL_WORKER: CodeType = pools._worker.__code__
_QUEUE_GET: CodeType = queue.Queue.get.__code__
_FUTURE_RESULT: CodeType = futures.Future.result.__code__
_CONDITION_WAIT: CodeType = threading.Condition.wait.__code__

# A process pool's feeder only moves jobs to the children; the loop counts those jobs itself.
_FEEDER = "QueueFeederThread"


def alive_threads() -> frozenset[threading.Thread]:
    """Return the threads that are alive now; by object, because the system reuses thread numbers."""
    return frozenset(threading.enumerate())


def may_call_back(known: frozenset[threading.Thread]) -> list[threading.Thread]:
    """Return the threads outside ``known`` that are alive and not idle, without the current one."""
    threads = [thread for thread in threading.enumerate() if thread not in known]
    if not threads:
        return []
    frames = sys._current_frames()
    current = threading.current_thread()
    return [
        thread
        for thread in threads
        if thread is not current and not is_idle(thread, None if thread.ident is None else frames.get(thread.ident))
    ]


def is_idle(thread: threading.Thread, frame: FrameType | None) -> bool:
    """Return whether ``thread``, now in ``frame``, waits for what only somebody else can give it.

    That is a worker of a ``ThreadPoolExecutor`` without a job, a helper of a process pool without one, and a
    thread that waits without a timeout on an empty ``queue.Queue`` (anyio's workers) or for a future
    (a caller of ``run_coroutine_threadsafe``). Whoever gives it is the loop or a thread that is looked at itself.
    """
    if thread.name == _FEEDER:
        return True
    if type(thread).__name__ == "_ExecutorManagerThread":
        return not getattr(thread, "pending_work_items", None)
    if frame is None:
        return False
    if frame.f_code is _POOL_WORKER:
        # A worker holds the job in this local from taking it to having called back.
        return frame.f_locals.get("work_item") is None
    caller = frame.f_back
    if frame.f_code is not _CONDITION_WAIT or caller is None or caller.f_code not in (_QUEUE_GET, _FUTURE_RESULT):
        return False
    given = caller.f_locals
    waited_for: Any = given["self"]
    if given["timeout"] is not None:
        return False
    return not (waited_for._qsize() if caller.f_code is _QUEUE_GET else waited_for._state == "FINISHED")


def describe_thread(thread: threading.Thread) -> str:
    """Return the thread's name and where its own code is now."""
    ident = thread.ident
    frame = None if ident is None else sys._current_frames().get(ident)
    while frame is not None and frame.f_back is not None and is_library(frame):
        frame = frame.f_back
    if frame is None:
        return f"thread {thread.name!r}"
    return f"thread {thread.name!r} at {frame.f_code.co_filename}:{frame.f_lineno}"


_STANDARD_LIBRARY = sys.stdlib_module_names


def is_library(frame: FrameType) -> bool:
    """Return whether ``frame`` runs code of the standard library or of this package."""
    name: str = frame.f_globals.get("__name__", "")
    top = name.partition(".")[0]
    if top == "test":  # CPython's own tests are a package of the standard library, and are a user's code
        return False
    return (top in _STANDARD_LIBRARY and top != "__main__") or is_plumbing(name)
