"""The framework's in-memory storage, whose save never yields.

Owns the name ``memory``; must not change the storage.
"""

from pathlib import Path
from typing import Any

from agent_framework import InMemoryCheckpointStorage


def make(_directory: Path) -> Any:
    """Return an empty storage."""
    return InMemoryCheckpointStorage()


PLUGIN = make
