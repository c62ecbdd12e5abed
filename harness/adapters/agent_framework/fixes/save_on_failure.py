"""Fix candidate: the failure path saves one checkpoint of the step cache before it raises.

Owns the emulation, undone when the context ends; must not touch the installed files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from harness.adapters.agent_framework.releases import FunctionalWorkflow


@contextlib.contextmanager
def apply() -> Iterator[None]:
    """Save once after the tasks of a failed run were swept, as the interruption path does."""
    original = FunctionalWorkflow._execute

    async def _execute(self: Any, ctx: Any, message: Any) -> Any:
        try:
            return await original(self, ctx, message)
        except Exception:
            if ctx._on_step_completed is not None:
                await ctx._on_step_completed()
            raise

    FunctionalWorkflow._execute = _execute
    try:
        yield
    finally:
        FunctionalWorkflow._execute = original


PLUGIN = apply
