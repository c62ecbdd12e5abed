"""An in-memory checkpointer whose puts first wait for the network, as those of a database server do.

Owns the name ``remote``; must not know the loop that it runs on.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

ROUND_TRIP_S = 0.05


class RemoteSaver(InMemorySaver):
    """Stores in memory after one round trip."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Wait, then store a checkpoint."""
        await asyncio.sleep(ROUND_TRIP_S)
        return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Wait, then store the writes of a node."""
        await asyncio.sleep(ROUND_TRIP_S)
        await super().aput_writes(config, writes, task_id, task_path)


def make(_directory: Path) -> Any:
    """Return an empty checkpointer."""
    return RemoteSaver()


PLUGIN = make
