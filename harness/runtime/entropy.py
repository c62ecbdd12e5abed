"""Seeded randomness: uuid4, ``random``, ``os.urandom`` and ``secrets`` are the same in every execution.

Owns the patches, applied once per search and undone after; must not know what draws from them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import struct
from collections.abc import Iterator
from typing import Any

_SEED = 20_240_229
# Restoring a state costs half of what seeding does.
_STATE = random.Random(_SEED).getstate()
_generator: random.Random = random._inst  # what the module's functions draw from
_STATE_IN_MEMORY = struct.pack("i624I", _STATE[1][-1], *_STATE[1][:-1])


class _Source:
    """Bytes from a generator that starts anew with each execution."""

    def __init__(self) -> None:
        self.generator: random.Random | None = None

    def urandom(self, size: int, /) -> bytes:
        if self.generator is None:
            self.generator = random.Random(_SEED)
        return self.generator.randbytes(size)


_source = _Source()


@contextlib.contextmanager
def seeded_entropy() -> Iterator[None]:
    """Replace the operating system's randomness while the context is open."""
    state = random.getstate()
    before = os.urandom, getattr(random, "_urandom", None)
    os.urandom = _source.urandom
    random._urandom = _source.urandom  # type: ignore[attr-defined]  # SystemRandom, hence secrets
    try:
        yield
    finally:
        os.urandom = before[0]
        random._urandom = before[1]  # type: ignore[attr-defined]
        random.setstate(state)


def reseed() -> None:
    """Begin an execution: every generator starts at the same place."""
    _source.generator = None
    memory = _memory()
    if memory is None or memory.raw != _STATE_IN_MEMORY:
        random.setstate(_STATE)


@functools.cache
def _memory() -> Any:
    """Return the state of ``random`` as CPython keeps it, to be compared; None where it keeps it in another way.

    Few programs draw anything, and to restore a state that is there already would be a tenth of a small execution.
    Source: Modules/_randommodule.c, RandomObject: an index and 624 words after the object's head.
    """
    try:
        import ctypes  # not needed by those who only import this package

        at = ctypes.c_void_p.from_buffer(ctypes.py_object(_generator)).value or 0
        memory = (ctypes.c_char * len(_STATE_IN_MEMORY)).from_address(at + object.__basicsize__)
    except (ImportError, ValueError, AttributeError):
        return None
    before = _generator.getstate()
    try:
        _generator.setstate(_STATE)
        if memory.raw != _STATE_IN_MEMORY:
            return None
        _generator.random()
        return None if memory.raw == _STATE_IN_MEMORY else memory
    finally:
        _generator.setstate(before)
