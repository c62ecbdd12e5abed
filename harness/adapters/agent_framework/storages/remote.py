"""An in-memory storage whose save first waits for the network, as the report of #9615 has it.

Owns the name ``remote``; must not know the loop that it runs on.
"""

import asyncio
from pathlib import Path
from typing import Any

from agent_framework import InMemoryCheckpointStorage

ROUND_TRIP_S = 0.05


class RemoteStorage(InMemoryCheckpointStorage):
    """Stores in memory after one round trip."""

    async def save(self, checkpoint: Any) -> Any:
        """Wait, then save."""
        await asyncio.sleep(ROUND_TRIP_S)
        return await super().save(checkpoint)


def make(_directory: Path) -> Any:
    """Return an empty storage."""
    return RemoteStorage()


PLUGIN = make
