"""Which run of a workflow this is: the first one, or a resume.

Owns one context variable; must not know what a run is.
"""

from __future__ import annotations

from contextvars import ContextVar

_attempt: ContextVar[int] = ContextVar("harness_attempt", default=0)


def attempt() -> int:
    """Return 0 inside the first run of an execution, 1 inside its first resume, and so on."""
    return _attempt.get()


def set_attempt(number: int) -> None:
    """Say which run begins; it holds for the current context and the tasks made from it."""
    _attempt.set(number)
