"""The outside world: real selectors, the gate in front of them, and waiting in real time.

Owns the lazy selector, the list of loop methods that leave the process, and how virtual time follows real
time while something outside is pending; must not know which arrival goes first.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from harness.model.errors import UncontrolledError
from harness.runtime.clock import real_time
from harness.runtime.ops import caller_site
from harness.runtime.threads import describe_thread, is_library, may_call_back
from harness.runtime.waits import describe_waits

# While only threads are waited for, look this often whether they are still alive and busy.
# How long a quiet loop is looked at before it counts as deadlocked although threads are alive: 40 times 5 ms.
_LOOKS = 40
_LOOK_S = 5e-3
_LOOK_AGAIN_S = 0.02
_HELD_S = 1e-3
_INSTALLED = "site-packages"
_SLOW_PEER_S = 0.02
_LONGEST_SELECT_S: float = asyncio.base_events.MAXIMUM_SELECT_TIMEOUT  # type: ignore[attr-defined]
# asyncio's ThreadedChildWatcher names its threads so; each ends when its child process does.
_CHILD_WATCHER = "waitpid-"
_RUN_UNTIL_COMPLETE = asyncio.BaseEventLoop.run_until_complete.__code__

# Public loop methods that reach outside. Each is refused, with the call site, unless real I/O is allowed.
OUTSIDE_METHODS = (
    "add_reader",
    "add_signal_handler",
    "add_writer",
    "connect_accepted_socket",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "getaddrinfo",
    "getnameinfo",
    "sendfile",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_recvfrom_into",
    "sock_sendall",
    "sock_sendfile",
    "sock_sendto",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
)


def refuse(what: str) -> UncontrolledError:
    """Return the error for an attempt to leave the process, with its call site."""
    return UncontrolledError(
        f"{what} at {user_site() or 'unknown place'}: the harness does not control what happens outside the event "
        "loop. Replace it by a stand-in, or allow it with allow_real_io=True; its replay is then not guaranteed."
    )


def user_site() -> str:
    """Return ``file:line`` of the nearest caller outside the standard library and this package.

    If that is an installed package, the program's own line is named first.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame):
        frame = frame.f_back
    if frame is None:  # a thread whose target is the standard library's, such as a pool's worker
        return caller_site(sys._getframe(1))
    through = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    while frame is not None and (is_library(frame) or _INSTALLED in frame.f_code.co_filename):
        # Below the loop is who started it, who did not make this call.
        frame = None if frame.f_code.co_name == "_run_once" else frame.f_back
    own = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return f"{own} (through {through})" if own and own != through else through


class LazySelector(selectors.BaseSelector):
    """A selector that costs no file descriptor until something is registered.

    gate: called before each registration; it raises where real I/O is not allowed.
    """

    def __init__(self, gate: Callable[[], None]) -> None:
        self._real: selectors.BaseSelector | None = None
        self._gate = gate

    @property
    def watching(self) -> bool:
        """Whether any file is registered."""
        return self._real is not None and bool(self._real.get_map())

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file; opens the real selector."""
        self._gate()
        if self._real is None:
            self._real = selectors.DefaultSelector()
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Stop watching a file."""
        if self._real is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file for other events."""
        if self._real is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return self._real.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait at most ``timeout`` real seconds."""
        return [] if self._real is None else self._real.select(timeout)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return what is watched."""
        return {} if self._real is None else self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Return the key of a watched file; raises KeyError when it is not watched."""
        if self._real is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return self._real.get_key(fileobj)

    def close(self) -> None:
        """Close the real selector."""
        if self._real is not None:
            self._real.close()


def guard_methods(loop_class: Any) -> None:
    """Put the gate in front of every method of ``loop_class`` that reaches outside."""
    for name in OUTSIDE_METHODS:
        setattr(loop_class, name, _guarded(name, getattr(loop_class, name)))


def _guarded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def outside(self: Any, *args: Any, **kwargs: Any) -> Any:
        enter_outside(self, f"loop.{name}()")
        return original(self, *args, **kwargs)

    return functools.wraps(original)(outside)


def enter_outside(loop: Any, what: str) -> None:
    """Let a call leave the process, or raise UncontrolledError with its call site."""
    if not loop.settings.allow_real_io:
        raise refuse(what)
    loop.used_real_io = True
    if loop.followed_at is None:
        loop.followed_at = real_time()


def outstanding(loop: Any) -> bool:
    """Return whether anything outside may still answer: a file, a signal, a job, a foreign thread."""
    return (loop.used_real_io and (pending_io(loop) or bool(jobs_in_flight(loop)))) or bool(loop.foreign_threads())


def pending_io(loop: Any) -> bool:
    """Return whether a file other than the loop's own pipe is watched, or a signal handler is set."""
    own = loop._internal_fds
    return len(loop._selector.get_map()) > own or bool(getattr(loop, "_signal_handlers", None))


def jobs_in_flight(loop: Any) -> list[Any]:
    """Return the futures of jobs that real executors were given and have not answered."""
    if loop.real_jobs:
        loop.real_jobs[:] = [job for job in loop.real_jobs if not job.done()]
    jobs: list[Any] = loop.real_jobs
    return jobs


def follow_real_time(loop: Any) -> None:
    """Move virtual time by the real time since the last call, if something was outstanding since then.

    Work in callbacks counts too: with I/O outstanding, virtual time neither jumps ahead nor stands still.
    """
    now = real_time()
    if loop.followed_at is not None and now > loop.followed_at:
        loop.offset_s += now - loop.followed_at
    loop.followed_at = now


def wait_for_deadline(loop: Any, when: float) -> bool:
    """Wait in real time until virtual time ``when`` while something is outstanding; return whether it arrived.

    Where real I/O is not allowed, an arrival is an error and the clock stays virtual; the wait only keeps
    a timeout from coming before the answer, and lasts ``external_wait_s`` per execution at most.
    """
    if not outstanding(loop):
        loop.followed_at = None
        return False
    allowed = loop.settings.allow_real_io
    if allowed:
        follow_real_time(loop)
    left_s = when - loop.now()
    if any(op.kind == "arrival" for op in loop.parked):
        # The scheduler holds an answer back: it plays a slow peer, whose slowness need not take real time.
        left_s = min(left_s, _SLOW_PEER_S)
    if not allowed:
        left_s = min(left_s, loop.settings.external_wait_s - loop.waited_s)
    if left_s <= 0:
        return False
    began = real_time()
    arrived = _wait(loop, left_s)
    loop.waited_s += real_time() - began
    if allowed:
        follow_real_time(loop)
    return arrived


def wait_when_quiet(loop: Any) -> bool:
    """Wait in real time on a loop that has nothing else; return whether anything arrived.

    Files, signals and child processes are waited for as stock asyncio does, without an end. Jobs and
    threads are waited for during ``external_wait_s``; then UncontrolledError says what was waited for.
    """
    if loop.settings.allow_real_io:
        follow_real_time(loop)
    bound_s = loop.settings.external_wait_s
    began = real_time()
    while True:
        threads, jobs = _threads_when_quiet(loop), jobs_in_flight(loop)
        unbounded = pending_io(loop) or _serves_another_thread(loop)
        unbounded = unbounded or any(_CHILD_WATCHER in thread.name for thread in threads)
        if not (unbounded or threads or jobs or loop.foreign or loop._stopping):
            if not _look_longer(loop):
                return False
            continue
        if not unbounded and real_time() - began > bound_s:
            break
        if _wait(loop, None if unbounded else _LOOK_AGAIN_S):
            if loop.settings.allow_real_io:
                follow_real_time(loop)
            return True
    awaited = [describe_thread(thread) for thread in threads]
    awaited += [f"{len(jobs)} executor jobs"] if jobs else []
    if not jobs and not loop.foreign_threads():
        return False  # only threads that are older than the loop: they are not the program's
    raise UncontrolledError(
        f"nothing can run any more, and in {bound_s:g} s of real time no answer came from {', '.join(awaited)}\n"
        f"{describe_waits(loop)}\nReplace it by a stand-in, or wait longer with external_wait_s."
    )


def _look_longer(loop: Any) -> bool:
    """Look for a while whether a thread that seems idle is not; return whether one is busy or has called back.

    A thread that took work from a queue stands where it waited until the system lets it run. On a machine with five
    busy processes per core that took longer than a glance in 9 of 29 tests of aiosqlite 0.22.1: a false deadlock.
    """
    known = loop.known_threads or frozenset()
    if not [thread for thread in threading.enumerate() if thread not in known and thread.ident != loop._thread_id]:
        return False
    for _ in range(_LOOKS):
        time.sleep(_LOOK_S)
        if loop.foreign or _threads_when_quiet(loop):
            return True
    return False


def _serves_another_thread(loop: Any) -> bool:
    """Return whether another thread uses this loop as a service: it runs for ever, and so waits for ever."""
    if not loop.settings.allow_real_io or threading.active_count() < 2:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _RUN_UNTIL_COMPLETE and frame.f_locals.get("self") is loop:
            return False
        frame = frame.f_back
    return True


def _threads_when_quiet(loop: Any) -> list[threading.Thread]:
    """Return the threads that may wake a quiet loop: older ones too, where real I/O is allowed."""
    known = frozenset() if loop.settings.allow_real_io else loop.known_threads or frozenset()
    return may_call_back(known, turn=loop.turn)


def _wait(loop: Any, timeout_s: float | None) -> bool:
    """Block until something arrives, at most ``timeout_s`` real seconds; return whether it did."""
    loop.open_pipe()
    deadline = None if timeout_s is None else real_time() + min(timeout_s, _LONGEST_SELECT_S)
    loop.waiting_outside = True
    try:
        while not loop.collect() and not loop._ready and not loop._stopping:
            left_s = None if deadline is None else deadline - real_time()
            if left_s is not None and left_s <= 0:
                return False
            if not pending_io(loop):  # a thread that ends without an answer wakes nobody
                if not outstanding(loop) and not _serves_another_thread(loop):
                    return False
                left_s = _LOOK_AGAIN_S if left_s is None else min(left_s, _LOOK_AGAIN_S)
            events = loop._selector.select(left_s)
            if loop.collect(events):
                return True
            if events:  # the ready files are held back already, and would wake each select at once
                time.sleep(_HELD_S)
    finally:
        loop.waiting_outside = False
    return True
