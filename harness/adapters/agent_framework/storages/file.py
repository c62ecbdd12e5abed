"""The framework's file storage, which finishes its own write when it is cancelled.

Owns the name ``file``; must not change the storage.
"""

from pathlib import Path
from typing import Any

from agent_framework import FileCheckpointStorage


def make(directory: Path) -> Any:
    """Return a storage in ``directory``."""
    return FileCheckpointStorage(directory)


PLUGIN = make
