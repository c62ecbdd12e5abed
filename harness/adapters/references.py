"""References: how a message ends when nothing goes wrong, to compare runs with.

Owns the note of it; must not know a framework, nor judge.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from harness.runtime.attempt import attempt, set_attempt
from harness.runtime.loop import ControlledLoop

# Runs that only show what is right: no oracle looks at their steps, and no program fails them as its first attempt.
REFERENCE = 1_000_000

# Goes through one message on an instance of its own; returns its outputs and the ids of what it asks a human.
Through = Callable[[], Awaitable[tuple[Sequence[Any], Sequence[str]]]]


async def note_references(loop: ControlledLoop, runs: Iterable[tuple[str, Any, Through]]) -> None:
    """Note how each message ends on an instance of its own, without a fault. runs: name, message, and how to run it."""
    before = attempt()
    known: list[tuple[str, str]] = []
    for name, message, through in runs:
        key = (name, repr(message))
        if key in known:
            continue
        known.append(key)
        set_attempt(REFERENCE)
        values: list[str] = []
        requests: list[str] = []
        error: str | None = None
        try:
            outputs, asked = await through()
            values, requests = [repr(output) for output in outputs], list(asked)
        except Exception as failure:
            error = repr(failure)
        loop.note("run.reference", name, run=REFERENCE, message=key[1], values=values, requests=requests, error=error)
    set_attempt(before)
