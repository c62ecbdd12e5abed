"""aiosqlite without its thread: each statement of a connection is an executor job.

Owns the stand-ins for the connection's queue and thread; must not know what is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import aiosqlite
from aiosqlite import Connection

from harness.runtime.jobs import park_job
from harness.runtime.loop import ControlledLoop


class _Queue:
    """Takes what a connection queues for its thread (``Connection._tx``), and makes jobs of it."""

    _max_workers = 1  # as of an executor with one worker: jobs run one after the other

    def __init__(self, loop: ControlledLoop) -> None:
        self._loop = loop

    def put_nowait(self, item: Any) -> None:
        """Queue a (future, function) pair; what is no pair only stops the thread (aiosqlite before 0.22)."""
        if not isinstance(item, tuple):
            return
        future, function = item
        if self._loop.is_closed():
            function()  # a connection that is freed after its execution closes itself
            return

        def job() -> Any:
            return function()

        job.__name__ = _name(function)
        park_job(self._loop, self, job, (), future=future or self._loop.create_future())


class _Thread:
    """Stands for the thread that is never started (``Connection._thread`` since aiosqlite 0.22)."""

    def __init__(self) -> None:
        self._alive = False

    def start(self) -> None:
        """Begin to live."""
        self._alive = True

    def is_alive(self) -> bool:
        """Return whether it was started."""
        return self._alive


def _name(function: Callable[..., Any]) -> str:
    """Return the name of the sqlite3 method that a job calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


@contextlib.contextmanager
def controlled_connections() -> Iterator[None]:
    """Let connections that are made on a controlled loop run their statements as jobs; others are as ever."""
    original = Connection.__init__

    @functools.wraps(original)
    def init(self: Connection, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        loop = asyncio._get_running_loop()
        if isinstance(loop, ControlledLoop):
            connection: Any = self
            connection._tx = _Queue(loop)
            thread = _Thread()
            if hasattr(connection, "_thread"):
                connection._thread = thread
            else:
                connection.start, connection.is_alive = thread.start, thread.is_alive

    Connection.__init__ = init  # type: ignore[method-assign]
    try:
        yield
    finally:
        Connection.__init__ = original  # type: ignore[method-assign]


class CountedConnection(sqlite3.Connection):
    """A connection that knows its cursors; ``aiosqlite.connect`` takes it as its ``factory``.

    Closed with a cursor in the middle of its rows, a connection lives on in sqlite3 as long as that cursor does, and
    keeps its locks (CPython 3.11); the task that holds the cursor of a dead process is not freed before its end.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cursors: list[weakref.ref[sqlite3.Cursor]] = []

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Return a new cursor."""
        made = super().cursor(*args, **kwargs)
        self._cursors = [known for known in self._cursors if known() is not None]
        self._cursors.append(weakref.ref(made))
        return made

    def close_cursors(self) -> None:
        """Close the cursors that are left."""
        for known in self._cursors:
            cursor = known()
            if cursor is not None:
                cursor.close()


def abandon(connection: aiosqlite.Connection) -> None:
    """Close ``connection`` at once, as the death of its process does: an open transaction is rolled back."""
    inner: Any = connection
    if not isinstance(inner._tx, _Queue):
        stop = getattr(inner, "stop", None) or inner._stop_running  # its name before aiosqlite 0.22
        stop()  # what a real thread opened, only that thread may close
        return
    raw, inner._connection = inner._connection, None
    if isinstance(raw, CountedConnection):
        raw.close_cursors()
    if raw is not None:
        raw.close()
