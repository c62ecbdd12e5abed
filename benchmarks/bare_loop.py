"""The least that a controlled loop can be: it runs what is ready in a random order, and nothing else.

Owns the yardstick of `speed.py`: no timers, no ops, no checks, no record of what it chose; must not know the harness.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any


class BareLoop(asyncio.AbstractEventLoop):
    """Runs callbacks that are ready, any of them next. It lives for one coroutine."""

    def __init__(self, source: random.Random) -> None:
        self._ready: list[asyncio.Handle] = []
        self._source = source
        self.turn = 0

    def call_soon(  # type: ignore[override]  # the stubs want a type variable tuple
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **kwargs: Any) -> Any:
        return asyncio.Task(coro, loop=self, **kwargs)

    def time(self) -> float:
        return self.turn * 1e-6

    def get_debug(self) -> bool:
        return False

    def run_until_complete(self, coro: Coroutine[Any, Any, Any]) -> Any:  # type: ignore[override]
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(coro)
            ready, draw = self._ready, self._source.random
            while not task.done():
                handle = ready.pop(int(draw() * len(ready)) if len(ready) > 1 else 0)
                self.turn += 1
                handle._run()
            return task.result()
        finally:
            asyncio._set_running_loop(None)
