"""The checkpointer under control: every put passes separate control points.

Owns the journal of puts and the await shape around their effect; must not know which checkpointer is inside.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from harness.adapters.langgraph.observe import completed_calls
from harness.model.errors import UsageError
from harness.runtime.attempt import attempt
from harness.runtime.identity import see_through
from harness.runtime.loop import ControlledLoop
from harness.runtime.shapes import SHAPES, Effect

PUT_FAULTS = ("none", "raises before commit", "raises after commit")


class StorageFault(RuntimeError):
    """The failure of a put that the search injected."""


class SaverControl:
    """Controls the two methods by which LangGraph saves, ``aput`` and ``aput_writes``, of one checkpointer.

    A put is *called*, its *snapshot* is taken when the checkpointer's own put begins, it is *committed* when that
    returns, and *acknowledged* when the caller goes on; or it is *cancelled* or *raised* in between. It says which
    completed nodes it *covers*: a put of writes the one that wrote them, a checkpoint all that finished in its graph.
    The methods are replaced on the instance, since LangGraph insists on a ``BaseCheckpointSaver``.
    """

    def __init__(self, *, shape: str = "as-is", faults: bool = False) -> None:
        """faults: let the search make a put fail before or after its commit."""
        self.synchronous: set[int] = set()  # the runs whose durability is "sync"
        self._shape = SHAPES[shape]
        self._faults = faults
        self._numbers = {"put": 0, "writes": 0}

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
        return saver

    def _controlled(self, method: Callable[..., Awaitable[Any]], kind: str, *, needs_loop: bool) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Awaitable[Any]:
            loop = asyncio.get_running_loop()

            async def run() -> Any:
                return await method(*args, **kwargs)

            if not isinstance(loop, ControlledLoop):
                return self._shape(Effect(run), kind)
            self._numbers[kind] += 1
            name = f"{kind}#{self._numbers[kind]}"
            data = self._put_data(loop, *args) if kind == "put" else _writes_data(loop, *args)
            # Not a coroutine function: a put is called when LangGraph calls it, not when its task first runs.
            loop.note("save.called", name, run=attempt(), **data)
            return self._save(loop, name, Effect(run, needs_loop=needs_loop), data)

        return call

    async def _save(self, loop: ControlledLoop, name: str, inner: Effect[Any], data: dict[str, Any]) -> Any:
        run, committed, fault = attempt(), False, "none"
        if self._faults:
            fault = PUT_FAULTS[loop.choose("fault", PUT_FAULTS, subject=name, interesting=True)]

        async def effect() -> Any:
            nonlocal committed
            if fault == "raises before commit":
                raise StorageFault(f"{name} failed before its commit")
            loop.note("save.snapshot", name, run=run, **data)
            result = await inner.run()
            committed = True
            loop.note("save.committed", name, run=run, **data)
            if fault == "raises after commit":
                raise StorageFault(f"{name} failed after its commit")
            return result

        task = asyncio.current_task()
        loop.interesting_tasks.add(task)
        try:
            result = await self._shape(Effect(effect, needs_loop=inner.needs_loop), name)
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

    def _put_data(self, loop: ControlledLoop, config: Any, checkpoint: Any, metadata: Any, _versions: Any) -> Any:
        place = config["configurable"]
        namespace = place.get("checkpoint_ns", "")
        inside = f"{namespace}|" if namespace else ""
        covers = [
            done.call
            for done in completed_calls(loop)
            if done.run == attempt() and (done.namespace == namespace or done.namespace.startswith(inside))
        ]
        return {
            "checkpoint": checkpoint["id"],
            "previous": place.get("checkpoint_id"),
            "timestamp": checkpoint["ts"],
            "namespace": namespace,
            "step": metadata.get("step"),
            "covers": covers,
            # With durability "sync" the writes of a superstep are to be durable when its checkpoint is begun.
            "supersedes": attempt() in self.synchronous and metadata.get("source") == "loop",
        }


def _writes_data(loop: ControlledLoop, config: Any, writes: Any, task_id: str, _path: str = "") -> Any:
    place = config["configurable"]
    return {
        "checkpoint": place.get("checkpoint_id"),
        "namespace": place.get("checkpoint_ns", ""),
        "task": task_id,
        "channels": [write[0] for write in writes],
        "covers": [done.call for done in completed_calls(loop) if (done.run, done.task) == (attempt(), task_id)],
    }


see_through(SaverControl._save.__code__, lambda coro: None if coro.cr_frame is None else coro.cr_frame.f_locals["name"])
