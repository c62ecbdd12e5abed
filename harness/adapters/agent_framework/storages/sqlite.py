"""A checkpoint storage on the standard library's sqlite3, the embedded kind of a database-backed one.

Owns the name ``sqlite``; must not know the loop: every statement runs as an executor job.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from agent_framework import WorkflowCheckpoint
from agent_framework._workflows._checkpoint_encoding import decode_checkpoint_value, encode_checkpoint_value
from agent_framework.exceptions import WorkflowCheckpointException

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS checkpoints (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL, workflow TEXT NOT NULL, timestamp TEXT NOT NULL, body TEXT NOT NULL
)
"""


class SqliteCheckpointStorage:
    """Stores checkpoints in one table; "latest" is the greatest timestamp, then the last written.

    path: a database file, or ``:memory:``. Errors of the database pass through as sqlite3.Error.
    """

    def __init__(self, path: str = ":memory:") -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.execute(_SCHEMA)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a copy of ``checkpoint`` and return its id."""
        body = json.dumps(encode_checkpoint_value(checkpoint.to_dict()))

        def write() -> None:
            with self._connection:
                self._connection.execute(
                    "INSERT OR REPLACE INTO checkpoints (id, workflow, timestamp, body) VALUES (?, ?, ?, ?)",
                    (checkpoint.checkpoint_id, checkpoint.workflow_name, checkpoint.timestamp, body),
                )

        await self._job(write)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return the checkpoint; raises WorkflowCheckpointException when there is none."""
        found = await self._read("WHERE id = ?", checkpoint_id)
        if not found:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return found[0]

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of a workflow, in the order in which they were written."""
        return await self._read("WHERE workflow = ? ORDER BY sequence", workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return the ids of a workflow's checkpoints, in the order in which they were written."""
        return [checkpoint.checkpoint_id for checkpoint in await self.list_checkpoints(workflow_name=workflow_name)]

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the latest checkpoint of a workflow, or None."""
        found = await self._read("WHERE workflow = ? ORDER BY timestamp DESC, sequence DESC LIMIT 1", workflow_name)
        return found[0] if found else None

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint; return whether there was one."""

        def remove() -> int:
            with self._connection:
                return self._connection.execute("DELETE FROM checkpoints WHERE id = ?", (checkpoint_id,)).rowcount

        return bool(await self._job(remove))

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    async def _read(self, where: str, value: str) -> list[WorkflowCheckpoint]:
        def select() -> list[str]:
            rows = self._connection.execute(f"SELECT body FROM checkpoints {where}", (value,))
            return [row[0] for row in rows]

        bodies = await self._job(select)
        return [WorkflowCheckpoint.from_dict(decode_checkpoint_value(json.loads(body))) for body in bodies]

    async def _job(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, work)


def make(_directory: Path) -> Any:
    """Return an empty storage in a database of its own, in memory."""
    return SqliteCheckpointStorage()


PLUGIN = make
