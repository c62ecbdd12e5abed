"""Seeded randomness: uuid4, ``random``, ``os.urandom`` and ``secrets`` are the same in every execution.

Owns the patches, applied once per search and undone after; must not know what draws from them.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator

_SEED = 20_240_229


# Restoring a state costs half of what seeding does.
_STATE = random.Random(_SEED).getstate()


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
    random.setstate(_STATE)
