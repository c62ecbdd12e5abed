"""Await shapes: the ways in which a storage operation can wait around its effect.

Owns the list and how each shape is executed; must not know any storage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from harness.runtime.loop import ControlledLoop

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effect(Generic[T]):
    """What an operation does to its storage. needs_loop: whether it awaits anything itself."""

    run: Callable[[], Coroutine[Any, Any, T]]
    needs_loop: bool = True


Shape = Callable[[Effect[Any], str], Awaitable[Any]]


async def _wait(name: str) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        await loop.park(name, interesting=True)
    else:
        await asyncio.sleep(0)


async def _as_is(effect: Effect[T], _name: str) -> T:
    return await effect.run()


def _yields(before: int, after: int) -> Shape:
    async def shape(effect: Effect[T], _name: str) -> T:
        for _ in range(before):
            await asyncio.sleep(0)
        result = await effect.run()
        for _ in range(after):
            await asyncio.sleep(0)
        return result

    return shape


async def _latency_before(effect: Effect[T], name: str) -> T:
    await _wait(f"{name}.commit")
    return await effect.run()


async def _latency_after(effect: Effect[T], name: str) -> T:
    result = await effect.run()
    await _wait(f"{name}.ack")
    return result


async def _latency_both(effect: Effect[T], name: str) -> T:
    await _wait(f"{name}.commit")
    result = await effect.run()
    await _wait(f"{name}.ack")
    return result


async def _create_task(effect: Effect[T], name: str) -> T:
    return await asyncio.get_running_loop().create_task(_latency_before(effect, name))


async def _gather(effect: Effect[T], name: str) -> T:
    results = await asyncio.gather(_latency_before(effect, name), asyncio.sleep(0))
    return results[0]


async def _shield(effect: Effect[T], name: str) -> T:
    return await asyncio.shield(asyncio.get_running_loop().create_task(_latency_before(effect, name)))


async def _executor(effect: Effect[T], name: str) -> T:
    """Run the effect on an executor thread; one that needs the loop waits for a thread first."""
    box: list[T] = []

    def commit() -> None:
        if effect.needs_loop:
            return
        try:
            effect.run().send(None)
        except StopIteration as stop:
            box.append(stop.value)

    commit.__name__ = f"{name}.commit"
    await asyncio.get_running_loop().run_in_executor(None, commit)
    return await effect.run() if effect.needs_loop else box[0]


# Plainest first: the order is the order of the search and of the shrinker.
SHAPES: dict[str, Shape] = {
    "as-is": _as_is,
    "latency-before": _latency_before,
    "latency-after": _latency_after,
    "latency-both": _latency_both,
    "yield-before": _yields(1, 0),
    "yield-after": _yields(0, 1),
    "yields-before": _yields(8, 0),
    "yields-after": _yields(0, 8),
    "create-task": _create_task,
    "gather": _gather,
    "shield": _shield,
    "executor": _executor,
}
