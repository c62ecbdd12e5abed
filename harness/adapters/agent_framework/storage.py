"""The storage proxy: every save passes separate control points.

Owns the journal of saves and the await shape around their effect; must not know which storage is inside.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from agent_framework import InMemoryCheckpointStorage

from harness.adapters.agent_framework.contents import summary
from harness.adapters.contents import digest
from harness.adapters.saves import Saves
from harness.model.errors import UsageError
from harness.runtime.attempt import attempt
from harness.runtime.identity import path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.shapes import SHAPES, Effect

METHODS = ("save", "load", "list_checkpoints", "delete", "get_latest", "list_checkpoint_ids")


class ControlledStorage:
    """Wraps any ``CheckpointStorage``; only ``save`` is changed, and what is read is noted when an oracle asks.

    A save is *called*, its *snapshot* is taken when the storage's own save begins, it is *committed* when
    that returns, and *acknowledged* when the caller goes on; or it is *cancelled* or *raised* in between.
    invariant: with the shape ``as-is`` a save takes exactly the turns of the wrapped storage.
    """

    def __init__(
        self,
        inner: Any,
        *,
        shape: str = "as-is",
        faults: bool = False,
        on_hang: Callable[[ControlledLoop], None] | None = None,
        notes: Collection[str] = (),
    ) -> None:
        """faults: let the search make a save fail before or after its commit.

        on_hang: let a save never finish, and call this when it does not.
        notes: ``storage`` for what is read, ``contents`` for digests of what is saved and read.
        """
        missing = [name for name in METHODS if not callable(getattr(inner, name, None))]
        if missing:
            raise UsageError(f"{type(inner).__name__} is no checkpoint storage: it has no {', '.join(missing)}()")
        self.inner = inner
        self.shape = shape
        self._notes = tuple(notes)
        self._shape = SHAPES[shape]
        self._saves = Saves(shape=shape, faults=faults, on_hang=on_hang)
        self._numbers: Counter[str] = Counter()
        # Of the framework's own storages only this one's save awaits nothing.
        self._needs_loop = getattr(type(inner), "save", None) is not InMemoryCheckpointStorage.save

    async def save(self, checkpoint: Any) -> Any:
        """Save ``checkpoint`` in the await shape of this execution."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, ControlledLoop):
            return await self._shape(Effect(lambda: self.inner.save(checkpoint)), "save")
        owner = path_of(loop, asyncio.current_task())
        self._numbers[owner] += 1
        operation = f"save#{self._numbers[owner]}"
        # Counted per task, so that the name means the same save in every schedule.
        name = f"{owner.rpartition('/')[2]}/{operation}"
        data = self.facts(checkpoint)
        loop.note("save.called", name, run=attempt(), **data)
        effect = Effect(lambda: self._called("save", checkpoint), needs_loop=self._needs_loop)
        return await self._saves.carry_out(loop, name, effect, data, operation=operation)

    async def load(self, checkpoint_id: str) -> Any:
        """Load a checkpoint."""
        found = await self._called("load", checkpoint_id)
        self._note_read("storage.loaded", found)
        return found

    async def get_latest(self, *, workflow_name: str) -> Any:
        """Return the latest checkpoint of a workflow, or None."""
        commits = self._saves.commits
        found = await self._called("get_latest", workflow_name=workflow_name)
        self._note_read("storage.latest", found, commits=commits, workflow=workflow_name)
        return found

    def facts(self, checkpoint: Any) -> dict[str, Any]:
        """Return what the journal keeps of a checkpoint."""
        data = summary(checkpoint)
        if "contents" in self._notes:
            data["digest"] = digest(checkpoint)
        return data

    def _note_read(self, kind: str, found: Any, **more: Any) -> None:
        """Note what was read. commits: how many saves had been committed when it was asked for."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, ControlledLoop) or not {"storage", "contents"} & set(self._notes):
            return
        data = {"checkpoint": None, "requests": [], "steps": []} if found is None else self.facts(found)
        loop.note(kind, str(data["checkpoint"]), run=attempt(), **{**data, **more})

    def _called(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the storage inside; raises UsageError when it is not async."""
        result = getattr(self.inner, name)(*args, **kwargs)
        if not inspect.isawaitable(result):
            what = f"{type(self.inner).__name__}.{name}()"
            raise UsageError(f"{what} is not async: it returned {type(result).__name__}, and nothing to await")
        return result

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._called, name) if name in METHODS else getattr(self.inner, name)
