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
        context = self._context
        try:
            context.run(self._callback)
        except BaseException as error:
            # asyncio knows what to do about each kind of error, so it meets this one too.
            self._context = _Raising(error)
            try:
                super()._run()
            finally:
                self._context = context
                self = None  # type: ignore[assignment]  # an error must not keep its own frame alive


class _Raising:
    """Stands for a context in which every callback raises one error."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def run(self, *_: Any) -> None:
        try:
            raise self._error
        finally:
            self = None  # type: ignore[assignment]
