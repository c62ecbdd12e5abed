"""What dying coroutines say: kept from the user, counted, and remembered by name.

Owns the two places where the interpreter speaks up about them; must not know why they were left.
"""

from __future__ import annotations

import contextlib
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any


async def _empty() -> Any:
    yield


def _method_types() -> tuple[type, ...]:
    """Return the types of what an async generator's methods return; ``types`` has no names for them."""
    generator = _empty()
    methods = generator.asend(None), generator.athrow(ValueError)
    for method in methods:
        method.close()
    return tuple(map(type, methods))


_SUSPENDED = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType, *_method_types())


class Noise:
    """What was kept from the user: how often, and the first so many different sentences."""

    LIMIT = 50

    def __init__(self) -> None:
        self.count = 0
        self.sentences: dict[str, int] = {}  # invariant: at most LIMIT keys, in order of first appearance

    def note(self, sentence: str) -> None:
        """Count ``sentence``."""
        self.count += 1
        if sentence in self.sentences or len(self.sentences) < self.LIMIT:
            self.sentences[sentence] = self.sentences.get(sentence, 0) + 1


def name_of(suspended: Any) -> str:
    """Name a coroutine or a generator without its address."""
    return getattr(suspended, "__qualname__", type(suspended).__name__)


@contextlib.contextmanager
def silenced(noise: Noise) -> Iterator[None]:
    """Divert to ``noise`` what is said of coroutines that were never awaited or that fail while they are closed.

    A schedule may cancel a task before its first turn; a coroutine that it was to await is then dropped, which is
    no mistake of the program. Everything else goes where it went before.
    """
    module: Any = warnings
    before_hook, before_warn = sys.unraisablehook, module._warn_unawaited_coroutine

    def unraisable(event: Any) -> None:
        if isinstance(event.object, _SUSPENDED):
            noise.note(f"{name_of(event.object)} raised {event.exc_type.__name__} while it was closed")
        else:
            before_hook(event)

    def unawaited(coro: Any) -> None:
        noise.note(f"coroutine {name_of(coro)} was never awaited")

    with warnings.catch_warnings():
        # Said by C code alone (genobject.c, _PyErr_WarnUnawaitedAgenMethod), hence no function to replace.
        warnings.filterwarnings("ignore", "coroutine method .* was never awaited", RuntimeWarning)
        sys.unraisablehook, module._warn_unawaited_coroutine = unraisable, unawaited
        try:
            yield
        finally:
            sys.unraisablehook, module._warn_unawaited_coroutine = before_hook, before_warn
