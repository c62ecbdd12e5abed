"""A fix candidate of langgraph #8039: a checkpoint waits for the writes of the nodes that it supersedes.

Owns the patch; must not know searches. The idea is that of the issue: the barrier that the loop has for delta
channels, for all writes; a write that failed stops the checkpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from langgraph.pregel._loop import AsyncPregelLoop


@contextlib.contextmanager
def writes_first() -> Iterator[None]:
    """Let each put of a checkpoint begin after the puts of writes that were called before it."""
    original_init = AsyncPregelLoop.__init__
    original_put = AsyncPregelLoop._checkpointer_put_after_previous

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        self._harness_pending = []
        if self.checkpointer_put_writes is not None:
            self.checkpointer_put_writes = _tracked(self.checkpointer_put_writes, self)

    def put(self: Any, *args: Any) -> Any:
        pending, self._harness_pending = self._harness_pending, []

        async def ordered() -> Any:
            for error in await asyncio.gather(*pending):
                if error is not None:
                    raise error
            return await original_put(self, *args)

        return ordered()

    AsyncPregelLoop.__init__ = init
    AsyncPregelLoop._checkpointer_put_after_previous = put
    try:
        yield
    finally:
        AsyncPregelLoop.__init__ = original_init
        AsyncPregelLoop._checkpointer_put_after_previous = original_put


def _tracked(put_writes: Any, owner: Any) -> Any:
    """Return ``put_writes``, with a future per call that tells how it went."""

    @functools.wraps(put_writes)
    def call(*args: Any) -> Any:
        over: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        owner._harness_pending.append(over)

        async def write() -> None:
            try:
                await put_writes(*args)
            except BaseException as error:
                over.set_result(error)
                raise
            over.set_result(None)

        return write()

    return call


PLUGIN = writes_first
