"""Foreign threads: which of them may still call back, where they are, and which only wait for work.

Owns the reading of other threads' stacks; must not know the loop that waits for them.
"""

from __future__ import annotations

import dis
import gc
import queue
import sys
import threading
import time
import weakref
from concurrent import futures
from concurrent.futures import thread as pools
from types import CodeType, FrameType
from typing import Any

from harness.runtime.clock import real_time
from harness.runtime.ops import is_plumbing

_POOL_WORKER: CodeType = pools._worker.__code__
_QUEUE_GET: CodeType = queue.Queue.get.__code__
_FUTURE_RESULT: CodeType = futures.Future.result.__code__
_CONDITION_WAIT: CodeType = threading.Condition.wait.__code__
_THREAD_START: CodeType = threading.Thread.start.__code__
# The second is where a join waits until Python 3.12.
_JOINS: list[CodeType] = [
    method.__code__
    for name in ("join", "_wait_for_tstate_lock")
    if (method := getattr(threading.Thread, name, None)) is not None
]

# A process pool's feeder only moves jobs to the children; the loop counts those jobs itself.
_FEEDER = "QueueFeederThread"


def alive_threads() -> frozenset[threading.Thread]:
    """Return the threads that are alive now; by object, because the system reuses thread numbers."""
    return frozenset(threading.enumerate())


# A thread that was just given work by a queue of C still stands where it waited until it gets to run, and from
# Python 3.13 on the queue is empty then. It is idle when it has not used its processor for so long, in real
# seconds, while nobody who could have given it work ran.
_SETTLED_S = 0.05
_seen: weakref.WeakKeyDictionary[threading.Thread, tuple[tuple[float, int], float]] = weakref.WeakKeyDictionary()

# By code and instruction: where the queue of a blocking ``get`` is found, see ``queue_path``.
_paths: dict[tuple[CodeType, int], tuple[str, ...]] = {}


def may_call_back(known: frozenset[threading.Thread], *, turn: int) -> list[threading.Thread]:
    """Return the threads outside ``known`` that are alive and not idle, without the current one.

    turn: of the loop that asks; it is equal for two calls only if the loop ran nothing between them.
    """
    current = threading.current_thread()
    threads = [thread for thread in threading.enumerate() if thread not in known and thread is not current]
    if not threads:
        return threads
    frames = current_frames()
    return [thread for thread in threads if not is_idle(thread, frames.get(thread.ident or 0), turn=turn)]


def current_frames() -> dict[int, FrameType]:
    """Return the frame that each thread is in; none where reading them could crash the process.

    CPython goes through the threads of all interpreters (pystate.c, _PyThread_CurrentFrames), and from 3.12 on an
    interpreter with a lock of its own runs meanwhile.
    """
    interpreters: Any = sys.modules.get("_interpreters") or sys.modules.get("_xxsubinterpreters")
    if interpreters is not None and len(interpreters.list_all()) > 1:
        return {}
    return sys._current_frames()


def is_idle(thread: threading.Thread, frame: FrameType | None, *, turn: int) -> bool:
    """Return whether ``thread``, now in ``frame``, waits for what only somebody else can give it.

    That is a worker of a ``ThreadPoolExecutor`` without a job, a helper of a process pool without one, and a
    thread that waits without a timeout on an empty queue (the workers of anyio and aiosqlite), for a future
    (a caller of ``run_coroutine_threadsafe``) or for the end of a thread. Whoever gives it is the loop or a thread
    that is looked at itself.
    """
    if thread.name == _FEEDER:
        return True
    if type(thread).__name__ == "_ExecutorManagerThread":
        return not getattr(thread, "pending_work_items", None)
    if frame is None:
        return False
    if frame.f_code is _POOL_WORKER:
        # A worker holds the job in this local from taking it to having called back.
        values = locals_of(frame)
        if values.get("work_item") is not None:
            return False
        # The pool counts its idle workers; it may count too few, when one takes the job that another was meant for.
        pool = values["executor_reference"]()
        return pool is None or pool._idle_semaphore._value >= len(pool._threads) or has_settled(thread, turn)
    if waits_on_simple_queue(frame):
        return has_settled(thread, turn)
    if frame.f_code in _JOINS:
        return locals_of(frame)["timeout"] in (None, -1)
    caller = frame.f_back
    if frame.f_code is not _CONDITION_WAIT or caller is None or caller.f_code not in (_QUEUE_GET, _FUTURE_RESULT):
        return False
    given = locals_of(caller)
    waited_for: Any = given["self"]
    if given["timeout"] is not None:
        return False
    return not (waited_for._qsize() if caller.f_code is _QUEUE_GET else waited_for._state == "FINISHED")


def waits_for_a_thread(ident: int) -> bool:
    """Return whether thread ``ident`` is blocked until another one gives it something or ends.

    ``Thread.start`` waits too, and its thread may be far when it goes on.
    """
    frame = current_frames().get(ident)
    if frame is None or (frame.f_code is not _CONDITION_WAIT and frame.f_code not in _JOINS):
        return False
    while frame is not None and frame.f_globals.get("__name__") == "threading":
        if frame.f_code is _THREAD_START:
            return False
        frame = frame.f_back
    return True


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of a frame that another thread runs.

    Until 3.12 ``f_locals`` is a dictionary that CPython fills from the frame without looking whether the frame is still
    there (frameobject.c, _PyFrame_FastToLocalsWithError). A collection, or the end of the last value of a variable,
    lets the other thread run in between, and the process crashes. So nothing is collected, and nothing is left in the
    dictionary whose end could come while it is filled the next time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        shared: Any = frame.f_locals
        found = dict(shared)
        if sys.version_info < (3, 13):
            shared.clear()
        return found
    finally:
        if collecting:
            gc.enable()


def has_settled(thread: threading.Thread, turn: int) -> bool:
    """Return whether neither ``thread`` nor the loop has run for a while; False where the system does not tell."""
    if thread.ident is None or not hasattr(time, "pthread_getcpuclockid"):
        return False
    try:
        state = time.clock_gettime(time.pthread_getcpuclockid(thread.ident)), turn
    except OSError:  # it has just ended
        return False
    before = _seen.get(thread)
    if before is None or before[0] != state:
        _seen[thread] = state, real_time()
        return False
    return real_time() - before[1] >= _SETTLED_S


def waits_on_simple_queue(frame: FrameType) -> bool:
    """Return whether ``frame`` is in the call ``x.get()`` of an empty ``queue.SimpleQueue``, which has no frame."""
    place = frame.f_code, frame.f_lasti
    if place not in _paths:
        _paths[place] = queue_path(*place)
    name, *attributes = _paths[place] or ("",)
    found: Any = locals_of(frame).get(name)
    for attribute in attributes:
        found = getattr(found, "__dict__", {}).get(attribute)
    return isinstance(found, queue.SimpleQueue) and found.empty()


def queue_path(code: CodeType, offset: int) -> tuple[str, ...]:
    """Return ``("self", "_tx")`` if the call at ``offset`` is ``self._tx.get()``; empty if it is another one."""
    before: list[dis.Instruction] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname not in ("CACHE", "PRECALL", "PUSH_NULL", "NOP", "RESUME"):
            before.append(instruction)
        if instruction.offset >= offset:
            break
    if len(before) < 3 or before[-1].opname != "CALL" or before[-1].arg or before[-2].argval != "get":
        return ()
    path: list[str] = []
    for instruction in reversed(before[:-2]):
        path.insert(0, str(instruction.argval))
        if instruction.opname in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_FAST_BORROW"):
            return tuple(path)
        if instruction.opname != "LOAD_ATTR":
            break
    return ()


def describe_thread(thread: threading.Thread) -> str:
    """Return the thread's name and where its own code is now."""
    ident = thread.ident
    frame = None if ident is None else current_frames().get(ident)
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
