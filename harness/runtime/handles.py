"""Handles: what waits in the ready queue, run in fewer calls than asyncio's own.

Owns one callback with its arguments; must not know when it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Handle(asyncio.Handle):
    """An ``asyncio.Handle`` that does not unpack arguments where there are none, as for every step of a task."""

    __slots__ = ()
    _args: tuple[Any, ...]
    _callback: Callable[..., object]
    _context: Any

    def _run(self) -> None:
        if self._args:
            super()._run()
            return
        try:
            self._context.run(self._callback)
        except BaseException as error:
            # asyncio knows what to do about each kind of error, so it meets this one too.
            self._context = _Raising(error, self, self._context)
            super()._run()
        self = None  # type: ignore[assignment]  # an error must not keep its own frame alive


class _Raising:
    """Stands for the context of a handle until its callback is called once more, which raises ``error`` again."""

    def __init__(self, error: BaseException, handle: Handle, context: Any) -> None:
        self._error = error
        self._handle = handle
        self._context = context

    def run(self, *_: Any) -> None:
        self._handle._context = self._context  # in which asyncio calls the exception handler, from 3.12 on
        error = self._error
        del self._error, self._handle
        try:
            raise error
        finally:
            del error
