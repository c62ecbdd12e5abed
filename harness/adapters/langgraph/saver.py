"""The checkpointer under control: every put passes separate control points, and what is read can be noted.

Owns what the journal keeps of a put and of a read; must not know which checkpointer is inside.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from harness.adapters.contents import digest
from harness.adapters.langgraph.observe import completed_calls, covered_calls
from harness.adapters.saves import Saves
from harness.model.errors import UsageError
from harness.runtime.attempt import attempt
from harness.runtime.loop import ControlledLoop

INTERRUPT = "__interrupt__"  # the channel of what a node asks; langgraph.constants has it until 1.0 only


class SaverControl:
    """Controls the two methods by which LangGraph saves, ``aput`` and ``aput_writes``, of one checkpointer.

    A put says which completed nodes it *covers*: a put of writes the one that wrote them, a checkpoint all that
    finished in its graph up to its superstep.
    The methods are replaced on the instance, since LangGraph insists on a ``BaseCheckpointSaver``.
    """

    def __init__(self, saves: Saves, *, notes: Collection[str] = ()) -> None:
        """notes: ``storage`` for what is read, ``contents`` for digests of what is put and read."""
        self.synchronous: set[int] = set()  # the runs whose durability is "sync"
        self.threads: dict[str, str] = {}  # the name of the runs of each thread
        self._saves = saves
        self._notes = tuple(notes)
        self._commits = 0  # of checkpoints of the outermost graph
        self._steps: dict[str, list[str]] = {}  # what each checkpoint holds, with what it descends from
        self._acknowledged: set[str] = set()  # checkpoints, by id

    def take(self, saver: Any) -> Any:
        """Return ``saver``, controlled; raises UsageError for what is no checkpointer."""
        if not isinstance(saver, BaseCheckpointSaver):
            raise UsageError(f"{saver!r} is not a checkpointer: derive from langgraph's BaseCheckpointSaver")
        in_memory = isinstance(saver, InMemorySaver)
        for name, method in (("put", "aput"), ("writes", "aput_writes")):
            # Of LangGraph's own checkpointers only this one's puts await nothing.
            plain = in_memory and getattr(type(saver), method) is getattr(InMemorySaver, method)
            controlled = self._controlled(getattr(saver, method), name, needs_loop=not plain)
            setattr(saver, method, controlled)
        if {"storage", "contents"} & set(self._notes):
            saver.aget_tuple = self._noted(saver.aget_tuple)
        return saver

    def facts(self, found: Any) -> dict[str, Any]:
        """Return what oracles judge of a stored checkpoint: its place in the chain, its steps and its open requests."""
        if found is None:
            return {"checkpoint": None, "requests": [], "steps": []}
        before = found.parent_config
        asked = [value for _, channel, value in found.pending_writes or () if channel == INTERRUPT]
        return {
            "checkpoint": found.checkpoint["id"],
            "previous": None if before is None else before["configurable"]["checkpoint_id"],
            "timestamp": found.checkpoint["ts"],
            "steps": self._steps.get(found.checkpoint["id"], []),
            "requests": sorted(request.id for value in asked for request in value),
            **self._digest(found.checkpoint),
        }

    def _digest(self, checkpoint: Any) -> dict[str, str]:
        """Return the digest of the values; a checkpointer may keep the other parts of a checkpoint apart from them."""
        values = checkpoint["channel_values"], checkpoint["channel_versions"]
        return {"digest": digest(values)} if "contents" in self._notes else {}

    def _noted(self, read: Callable[..., Awaitable[Any]]) -> Any:
        """Return ``read``, which notes what it finds of the outermost graph of a thread."""

        @functools.wraps(read)
        async def aget_tuple(config: Any) -> Any:
            commits, place = self._commits, config["configurable"]
            found = await read(config)
            loop = asyncio.get_running_loop()
            if isinstance(loop, ControlledLoop) and not place.get("checkpoint_ns"):
                kind = "storage.loaded" if place.get("checkpoint_id") else "storage.latest"
                facts = self.facts(found)
                name = self.threads.get(place["thread_id"])
                loop.note(kind, str(facts["checkpoint"]), run=attempt(), commits=commits, workflow=name, **facts)
            return found

        return aget_tuple

    def _controlled(self, method: Callable[..., Awaitable[Any]], kind: str, *, needs_loop: bool) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Awaitable[Any]:
            loop = asyncio.get_running_loop()
            data: dict[str, Any] = {}
            if isinstance(loop, ControlledLoop):
                data = self._put_data(loop, *args) if kind == "put" else self._writes_data(loop, *args)

            async def counted() -> Any:
                result = await method(*args, **kwargs)
                self._commits += "checkpoint" in data
                return result

            saving = self._saves.save(kind, counted, data, needs_loop=needs_loop)
            return saving if kind == "writes" else self._acknowledge(saving, args[1]["id"])

        return call

    async def _acknowledge(self, put: Awaitable[Any], checkpoint: str) -> Any:
        result = await put
        self._acknowledged.add(checkpoint)
        return result

    def _put_data(self, loop: ControlledLoop, config: Any, checkpoint: Any, metadata: Any, _versions: Any) -> Any:
        place = config["configurable"]
        namespace = place.get("checkpoint_ns", "")
        covers = covered_calls(loop, namespace, step=int(metadata.get("step", -1)))
        steps = {*self._steps.get(place.get("checkpoint_id"), ()), *covers}
        self._steps[checkpoint["id"]] = sorted(steps)
        return {
            # a graph inside of a graph has a chain of its own, which nobody asks for the latest of
            "inner" if namespace else "checkpoint": checkpoint["id"],
            "previous": place.get("checkpoint_id"),
            "timestamp": checkpoint["ts"],
            "steps": sorted(steps),
            "requests": [],
            **self._digest(checkpoint),
            "namespace": namespace,
            "step": metadata.get("step"),
            "covers": covers if self._is_found(place) else [],
            # With durability "sync" the writes of a superstep are to be durable when its checkpoint is begun.
            "supersedes": attempt() in self.synchronous and metadata.get("source") == "loop",
        }

    def _writes_data(self, loop: ControlledLoop, config: Any, writes: Any, task_id: str, _path: str = "") -> Any:
        place = config["configurable"]
        anchor = place.get("checkpoint_id")
        covers = [done.call for done in completed_calls(loop) if (done.run, done.task) == (attempt(), task_id)]
        return {
            "anchor": anchor,
            "namespace": place.get("checkpoint_ns", ""),
            "task": task_id,
            "channels": [write[0] for write in writes],
            # With durability "async" a node may finish before the checkpoint that it started from is stored: nobody
            # can find its writes then.
            "covers": covers if anchor in self._acknowledged and self._is_found(place) else [],
        }

    def _is_found(self, place: Any) -> bool:
        """Return whether what is put at ``place`` can be found: the checkpoints of the graphs around it are stored."""
        own = place.get("checkpoint_ns", "")
        around = (known for name, known in place.get("checkpoint_map", {}).items() if name != own)
        return all(known in self._acknowledged for known in around)
