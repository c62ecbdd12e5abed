"""LangGraph's AsyncSqliteSaver, on aiosqlite.

Owns the name ``sqlite`` and the life of its connection; must not change the checkpointer.
"""

import itertools
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from harness.adapters.aiosqlite import CountedConnection, abandon

_NUMBERS = itertools.count()


class SqliteDatabase:
    """A database to which one process after the other connects.

    It is in memory and shared by name: a file would cost an fsync per commit, and one connection is kept open all
    the time, since the database is gone with its last.
    """

    def __init__(self, name: str) -> None:
        # A name is used once: what an execution left open would lock the tables of the next one.
        self._address = f"file:{name}-{next(_NUMBERS)}?mode=memory&cache=shared"
        self._keeper = sqlite3.connect(self._address, uri=True)
        self._connection: aiosqlite.Connection | None = None

    def connect(self) -> AsyncSqliteSaver:
        """Return a checkpointer on a connection of its own; the loop must be running."""
        self._connection = aiosqlite.connect(self._address, uri=True, factory=CountedConnection)
        return AsyncSqliteSaver(self._connection)

    def abandon(self) -> None:
        """Drop the connection as the death of its process does: what was not committed is gone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            abandon(connection)

    def close(self) -> None:
        """Close the connection of the last process, and lose the database."""
        self.abandon()
        self._keeper.close()


def make(directory: Path) -> Any:
    """Return an empty database, named after ``directory``."""
    return SqliteDatabase(quote(str(directory)))


PLUGIN = make
