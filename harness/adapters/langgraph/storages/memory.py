"""LangGraph's in-memory checkpointer, whose puts never yield.

Owns the name ``memory``; must not change the checkpointer.
"""

from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver


def make(_directory: Path) -> Any:
    """Return an empty checkpointer."""
    return InMemorySaver()


PLUGIN = make
