"""The storage proxy: every save passes separate control points.

Owns the journal of saves and the await shape around their effect; must not know which storage is inside.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from agent_framework import InMemoryCheckpointStorage

from harness.model.errors import UsageError
from harness.runtime.attempt import attempt
from harness.runtime.identity import path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.shapes import SHAPES, Effect

SAVE_FAULTS = ("none", "raises before commit", "raises after commit")
METHODS = ("save", "load", "list_checkpoints", "delete", "get_latest", "list_checkpoint_ids")


class StorageFault(RuntimeError):
    """The failure of a save that the search injected."""


class ControlledStorage:
    """Wraps any ``CheckpointStorage``; only ``save`` is changed.

    A save is *called*, its *snapshot* is taken when the storage's own save begins, it is *committed* when
    that returns, and *acknowledged* when the caller goes on; or it is *cancelled* or *raised* in between.
    invariant: with the shape ``as-is`` a save takes exactly the turns of the wrapped storage.
    """

    def __init__(self, inner: Any, *, shape: str = "as-is", faults: bool = False) -> None:
        """faults: let the search make a save fail before or after its commit."""
        missing = [name for name in METHODS if not callable(getattr(inner, name, None))]
        if missing:
            raise UsageError(f"{type(inner).__name__} is no checkpoint storage: it has no {', '.join(missing)}()")
        self.inner = inner
        self.shape = shape
        self._faults = faults
        self._shape = SHAPES[shape]
        self._saves: Counter[str] = Counter()
        # Of the framework's own storages only this one's save awaits nothing.
        self._needs_loop = getattr(type(inner), "save", None) is not InMemoryCheckpointStorage.save

    async def save(self, checkpoint: Any) -> Any:
        """Save ``checkpoint`` in the await shape of this execution."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, ControlledLoop):
            return await self._shape(Effect(lambda: self.inner.save(checkpoint)), "save")
        task = asyncio.current_task()
        owner = path_of(loop, task)
        self._saves[owner] += 1
        operation = f"save#{self._saves[owner]}"
        # Counted per task, so that the name means the same save in every schedule.
        name = f"{owner.rpartition('/')[2]}/{operation}"
        run = attempt()
        data = {
            "checkpoint": checkpoint.checkpoint_id,
            "previous": checkpoint.previous_checkpoint_id,
            "timestamp": checkpoint.timestamp,
            "steps": sorted(checkpoint.state.get("_step_cache", ())),
            "requests": sorted(checkpoint.pending_request_info_events),
        }
        committed = False
        fault = "none"
        if self._faults:
            fault = SAVE_FAULTS[loop.choose("fault", SAVE_FAULTS, subject=name, interesting=True)]

        async def effect() -> Any:
            nonlocal committed
            if fault == "raises before commit":
                raise StorageFault(f"{name} failed before its commit")
            loop.note("save.snapshot", name, run=run, **data)
            result = await self.inner.save(checkpoint)
            committed = True
            loop.note("save.committed", name, run=run, **data)
            if fault == "raises after commit":
                raise StorageFault(f"{name} failed after its commit")
            return result

        loop.note("save.called", name, run=run, **data)
        loop.interesting_tasks.add(task)
        try:
            result = await self._shape(Effect(effect, needs_loop=self._needs_loop), operation)
        except asyncio.CancelledError:
            loop.note("save.cancelled", name, run=run, committed=committed, **data)
            raise
        except Exception as error:
            loop.note("save.raised", name, run=run, committed=committed, error=repr(error), **data)
            raise
        finally:
            loop.interesting_tasks.discard(task)
        loop.note("save.acknowledged", name, run=run, **data)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
