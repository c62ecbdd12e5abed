"""The outside world: real selectors and the gate in front of them.

Owns the lazy selector and the list of loop methods that leave the process; must not know scheduling.
"""

from __future__ import annotations

import functools
import selectors
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from harness.model.errors import UncontrolledError
from harness.runtime.clock import real_time
from harness.runtime.ops import caller_site

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


def thread_idents() -> frozenset[int]:
    """Return the threads that are alive now."""
    return frozenset(thread.ident for thread in threading.enumerate() if thread.ident is not None)


def refuse(what: str) -> UncontrolledError:
    """Return the error for an attempt to leave the process, with its call site."""
    site = caller_site(sys._getframe(2)) or "unknown place"
    return UncontrolledError(
        f"{what} at {site}: the harness does not control what happens outside the event loop. "
        "Replace it by a stand-in, or allow it with allow_real_io=True; its replay is then not guaranteed."
    )


class LazySelector(selectors.BaseSelector):
    """A selector that costs no file descriptor until something is registered."""

    def __init__(self, opened: Callable[[], None]) -> None:
        self._real: selectors.BaseSelector | None = None
        self._opened = opened

    @property
    def watching(self) -> bool:
        """Whether any file is registered."""
        return self._real is not None and bool(self._real.get_map())

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file; opens the real selector."""
        if self._real is None:
            self._real = selectors.DefaultSelector()
            self._opened()
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
    loop.open_pipe()


def wait_outside(loop: Any, *, timeout_s: float | None) -> bool:
    """Wait in real time for I/O or for a foreign thread; return whether anything arrived.

    timeout_s: how long the next timer allows us to wait, or None when there is no timer.
    """
    selector: LazySelector = loop._selector
    threads = loop.foreign_threads()
    if not threads and not (loop.used_real_io and pending_io(loop)):
        return False
    if timeout_s is None and not (loop.used_real_io and pending_io(loop)):
        timeout_s = loop.settings.external_wait_s
    began = real_time()
    if loop.foreign:
        return True
    if selector.watching:
        loop._process_events(selector.select(timeout_s))
    else:
        loop.foreign_arrived.wait(timeout_s)
    if timeout_s is not None:
        loop.offset_s += min(timeout_s, real_time() - began)
    return bool(loop.foreign or loop._ready)


def pending_io(loop: Any) -> bool:
    """Return whether a file other than the loop's own pipe is watched, or a signal handler is set."""
    own = loop._internal_fds
    return len(loop._selector.get_map()) > own or bool(getattr(loop, "_signal_handlers", None))
