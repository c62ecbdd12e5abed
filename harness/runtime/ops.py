"""Operations: what is pending and may be delivered next.

Owns the kinds of ops and how each one is named; must not know which one goes first.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from harness.runtime.identity import path_of

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

OpKind = Literal["point", "job", "done", "arrival", "turn"]

_ADAPTERS = "harness.adapters."


def is_plumbing(module: str) -> bool:
    """Return whether a frame of ``module`` is asyncio's or ours, and so no place to show to a user."""
    if module.startswith(_ADAPTERS) and ".storages." in module:
        return False
    return module.startswith(("asyncio", "harness."))


def caller_site(frame: FrameType | None = None) -> str:
    """Return ``file:line`` of the nearest frame of the program, or "" when only the loop called."""
    frame = frame or sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_run_once":
        if not is_plumbing(frame.f_globals.get("__name__", "")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Op:
    """Something parked whose completion the loop holds back until it is delivered.

    number: age, unique per execution. rank: 0 in turn, above 0 a hold. early: it is in by the next
    iteration. deliver: makes it arrive, called once.
    """

    __slots__ = ("deliver", "early", "interesting", "kind", "loop", "name", "number", "owner", "rank", "site", "target")

    def __init__(
        self,
        loop: ControlledLoop,
        name: str,
        *,
        kind: OpKind,
        deliver: Callable[[Op], None],
        target: Any = None,
        interesting: bool = False,
    ) -> None:
        self.loop = loop
        self.name = name
        self.kind = kind
        self.deliver = deliver
        self.target = target
        self.owner = asyncio.current_task(loop)
        self.interesting = interesting or self.owner in loop.interesting_tasks
        self.number = loop.next_op_number()
        self.rank = 0
        self.early = False
        self.site = caller_site(sys._getframe(2)) if loop.tracing else ""

    def __str__(self) -> str:
        path = path_of(self.loop, self.owner)
        return self.name if path == "loop" else f"{path}/{self.name}"


class ControlledTimer(asyncio.TimerHandle):
    """A timer that is an op too: it has an age, a rank and a name.

    invariant: ``sleep`` is true exactly for the timer of ``asyncio.sleep(d)``, d > 0.
    """

    __slots__ = ("delay", "early", "interesting", "number", "owner", "rank", "site", "sleep")

    kind = "timer"
    number: int
    owner: Any
    rank: int
    early: bool
    sleep: bool
    delay: float
    site: str
    interesting: bool
    _loop: Any
    _when: float
    _cancelled: bool
    _scheduled: bool

    def __str__(self) -> str:
        path = path_of(self._loop, self.owner)
        name = f"sleep({self.delay:g})" if self.sleep else f"timer({self.delay:g})"
        return name if path == "loop" else f"{path}/{name}"


class NoMore:
    """The option that ends the arrivals of an iteration."""

    def __str__(self) -> str:
        return "no more"


NO_MORE = NoMore()
