"""Errors that nobody handled: what asyncio would have logged, as one line each.

Owns their wording and how many are kept; must not know who asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.runtime.identity import path_of

# An execution keeps this many of them.
MAX_UNHANDLED = 100


def describe_unhandled(context: Mapping[str, Any]) -> str:
    """Return an exception handler's context as one line without addresses, and without what it refers to."""
    subject = context.get("task") or context.get("future") or context.get("asyncgen")
    error = context.get("exception")
    loop = None if subject is None or not hasattr(subject, "get_loop") else subject.get_loop()
    name = path_of(loop, subject) if subject is not None else ""
    message = str(context.get("message") or "unhandled exception").partition(" <")[0]
    return message + (f" in {name}" if name else "") + ("" if error is None else f": {type(error).__name__}: {error}")
