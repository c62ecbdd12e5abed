"""A storage whose latest checkpoint is the one written last, whatever its timestamp says.

Owns the name ``write-order``; must not know the loop that it runs on.
"""

import asyncio
from pathlib import Path
from typing import Any

from agent_framework import InMemoryCheckpointStorage, WorkflowCheckpoint

ROUND_TRIP_S = 0.05


class WriteOrderStorage(InMemoryCheckpointStorage):
    """Stores in memory after one round trip, and orders by write sequence, as a database's serial column does.

    invariant: ``_checkpoints`` holds the ids in the order of their last write.
    """

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Wait, then save as the last one."""
        await asyncio.sleep(ROUND_TRIP_S)
        self._checkpoints.pop(checkpoint.checkpoint_id, None)
        return await super().save(checkpoint)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the checkpoint of a workflow that was written last, or None."""
        found = await self.list_checkpoints(workflow_name=workflow_name)
        return found[-1] if found else None


def make(_directory: Path) -> Any:
    """Return an empty storage."""
    return WriteOrderStorage()


PLUGIN = make
