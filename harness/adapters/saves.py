"""A save of any storage under control: separate control points, an await shape, and injected failures.

Owns the journal of one save; must not know what is saved, nor when a framework saves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.runtime.attempt import attempt
from harness.runtime.identity import keep_hashes, see_through
from harness.runtime.loop import ControlledLoop
from harness.runtime.shapes import SHAPES, Effect

SAVE_FAULTS = ("none", "raises before commit", "raises after commit")
# Not part of the fault "storage": a save that hangs lets nothing end but by a cancellation.
HANGING = "never finishes"


class StorageFault(RuntimeError):
    """The failure of a save that the search injected."""


class Saves:
    """Carries out saves in the await shape of this execution.

    A save is *called*, its *snapshot* is taken when the storage's own save begins, it is *committed* when that
    returns, and *acknowledged* when the caller goes on; or it is *cancelled* or *raised* in between.
    """

    def __init__(
        self, *, shape: str = "as-is", faults: bool = False, on_hang: Callable[[ControlledLoop], None] | None = None
    ) -> None:
        """faults: let the search make a save fail before or after its commit.

        on_hang: let a save never finish, and call this when it does not.
        """
        self.commits = 0
        self._shape = SHAPES[shape]
        self._faults = (*(SAVE_FAULTS if faults else SAVE_FAULTS[:1]), *(() if on_hang is None else (HANGING,)))
        self._on_hang = on_hang
        self._numbers: dict[str, int] = {}

    def save(
        self, kind: str, inner: Callable[[], Awaitable[Any]], data: Mapping[str, Any], *, needs_loop: bool = True
    ) -> Awaitable[Any]:
        """Note that a save is called, and return what carries it out.

        kind: names it in reports. data: what the journal keeps of it. needs_loop: whether ``inner`` awaits anything.
        It is no coroutine function: a save is called when the framework calls it, not when its task first runs.
        """

        async def run() -> Any:
            return await inner()

        loop = asyncio.get_running_loop()
        if not isinstance(loop, ControlledLoop):
            return self._shape(Effect(run), kind)
        self._numbers[kind] = number = self._numbers.get(kind, 0) + 1
        name = f"{kind}#{number}"
        loop.note("save.called", name, run=attempt(), **data)
        return self.carry_out(loop, name, Effect(run, needs_loop=needs_loop), data)

    async def carry_out(
        self, loop: ControlledLoop, name: str, inner: Effect[Any], data: Mapping[str, Any], *, operation: str = ""
    ) -> Any:
        """Carry out the save ``name`` that was called. operation: names what it waits for; ``name`` by default."""
        run, committed, fault = attempt(), False, "none"
        if len(self._faults) > 1:
            fault = self._faults[loop.choose("fault", self._faults, subject=name, interesting=True)]

        async def effect() -> Any:
            nonlocal committed
            if fault == "raises before commit":
                raise StorageFault(f"{name} failed before its commit")
            if fault == HANGING and self._on_hang is not None:
                self._on_hang(loop)
                await loop.create_future()
            loop.note("save.snapshot", name, run=run, **data)
            result = await inner.run()
            committed = True
            self.commits += 1
            loop.note("save.committed", name, run=run, **data)
            if fault == "raises after commit":
                raise StorageFault(f"{name} failed after its commit")
            return result

        task = asyncio.current_task()
        loop.interesting_tasks.add(task)
        try:
            result = await self._shape(Effect(effect, needs_loop=inner.needs_loop), operation or name)
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


def choose_shape(*, shapes: bool) -> str:
    """Return the await shape of the saves of this execution: a choice of the search, if ``shapes`` are on."""
    loop = asyncio.get_running_loop()
    if not shapes or not isinstance(loop, ControlledLoop):
        return "as-is"
    names = tuple(SHAPES)
    return names[loop.choose("shape", names, subject="save", interesting=True)]


def _name(coro: Any) -> str | None:
    return None if coro.cr_frame is None else str(coro.cr_frame.f_locals["name"])


see_through(Saves.carry_out.__code__, _name)
keep_hashes(Saves.carry_out)
