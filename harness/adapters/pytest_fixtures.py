"""Fixtures of interleaved tests: what stands for them until an execution begins, and what runs them then.

Owns the deferred fixtures of one execution; must not know what is searched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


class FlowSlot:
    """Stands for ``flow`` until an execution begins, and draws it. options: of the grammar."""

    def __init__(self, **options: Any) -> None:
        self.options = options


class DurableSlot:
    """Stands for ``durable`` until an execution begins. storage: its name."""

    def __init__(self, storage: str) -> None:
        self.storage = storage


class Deferred:
    """An async fixture that has not run yet; each execution runs it on its own loop."""

    def __init__(self, func: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.func = func
        self.arguments = arguments


def deferred(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``func``, or for an async fixture function one that returns a Deferred."""
    if not (inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func)):
        return func
    return functools.wraps(func)(functools.partial(_defer, func))


def _defer(func: Callable[..., Any], **arguments: Any) -> Deferred:
    return Deferred(func, arguments)


class Resolver:
    """Runs the deferred fixtures of one execution, each once, and finishes them in reverse order."""

    def __init__(self, make_durable: Callable[[], Any] | None) -> None:
        self._make_durable = make_durable
        self._values: list[tuple[Deferred, Any]] = []
        self._generators: list[Any] = []
        self._durables: list[Any] = []

    async def value(self, given: Any) -> Any:
        """Return what a fixture stands for."""
        if isinstance(given, DurableSlot) and self._make_durable is not None:
            self._durables.append(self._make_durable())
            return self._durables[-1]
        if isinstance(given, FlowSlot):
            from harness.adapters.agent_framework.generated import draw_flow

            return draw_flow(**given.options)
        if not isinstance(given, Deferred):
            return given
        for known, value in self._values:
            if known is given:
                return value
        arguments = {name: await self.value(argument) for name, argument in given.arguments.items()}
        made = given.func(**arguments)
        if inspect.isasyncgen(made):
            value = await anext(made)
            self._generators.append(made)
        else:
            value = await made
        self._values.append((given, value))
        return value

    async def finish(self) -> None:
        """Let what the oracles asked for be noted at the end of the test."""
        for durable in self._durables:
            await durable.finish()

    async def close(self) -> None:
        """Run the part after the ``yield`` of async generator fixtures."""
        while self._generators:
            await anext(self._generators.pop(), None)
