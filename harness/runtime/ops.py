"""Operations: what is pending and may be delivered next.

Owns the kinds of ops and how each one is named; must not know which one goes first.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from types import CoroutineType, FrameType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness.model.choice import START, Key, Place
from harness.runtime.identity import lane_path, path_of

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

OpKind = Literal["point", "job", "done", "arrival", "turn"]

# Iterations from the moment at which an op is parked. A job's function may run at once, on its thread; a
# job that has run is parked before the turns of its iteration, everything else during them.
_IN_TRANSIT: dict[OpKind, int] = {"point": 2, "job": 1, "done": 1, "arrival": 0, "turn": 0}

_ADAPTERS = "harness.adapters."


def is_plumbing(module: str) -> bool:
    """Return whether a frame of ``module`` is asyncio's or ours, and so no place to show to a user."""
    if module.startswith(_ADAPTERS) and ".storages." in module and ".storages._" not in module:
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


class Pool(NamedTuple):
    """An executor as the loop models it: a queue, first in, first out, and so many workers."""

    number: int
    workers: int


def place_of(loop: ControlledLoop, task: Any) -> Place:
    """Return where a suspended task is: its coroutine's name, and the instruction in each frame of the program.

    The same for all tasks that wait at one ``await``, in every execution of one process.
    """
    parts: list[str | int] = [_owner_name(loop, task)]
    awaited = task.get_coro()
    while isinstance(awaited, CoroutineType):
        frame = awaited.cr_frame
        if frame is None or is_plumbing(frame.f_globals.get("__name__", "")):
            break
        parts.append(frame.f_lasti if awaited.cr_suspended else START)
        awaited = awaited.cr_await
    return tuple(parts)


def _owner_name(loop: ControlledLoop, task: Any) -> str:
    number = getattr(task, "number", -1)
    return "" if number < 0 else loop.births[number].name


class Op:
    """Something parked whose completion the loop holds back until it is delivered.

    number: age, unique per execution. rank: 0 in turn, above 0 a hold. early: it is in as soon as it can be.
    deliver: makes it arrive, called once. ripe: the first iteration at which it can arrive while the loop is
    busy. A callback from outside is queued at the end of the iteration that asked for it at the earliest, runs
    in the next one, and what it wakes runs in the one after that. pool: where a job is queued.
    until: the virtual time from which on it is not held. source: ops of one source, but 0, arrive in their order.
    """

    __slots__ = (
        "deliver",
        "early",
        "interesting",
        "kind",
        "loop",
        "name",
        "number",
        "owner",
        "pool",
        "rank",
        "ripe",
        "site",
        "source",
        "target",
        "until",
    )

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
        self.until = math.inf
        self.source = 0
        self.ripe = loop.iteration + _IN_TRANSIT[kind]
        self.pool: Pool | None = None
        self.site = caller_site(sys._getframe(2)) if loop.tracing else ""

    def __str__(self) -> str:
        path = path_of(self.loop, self.owner)
        return self.name if path == "loop" else f"{path}/{self.name}"

    @property
    def key(self) -> Key:
        """Who this is, unique in an execution."""
        return "op", self.number

    @property
    def path(self) -> str:
        """The path of the task that waits for it."""
        return lane_path(self.loop, self.owner)

    @property
    def lane(self) -> int:
        """The number of the task that waits for it, or -1."""
        return getattr(self.owner, "number", -1)

    @property
    def place(self) -> Place:
        """What it is in every execution."""
        return _owner_name(self.loop, self.owner), self.name


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
    _source_traceback: Any

    def __str__(self) -> str:
        path = path_of(self._loop, self.owner)
        name = f"sleep({self.delay:g})" if self.sleep else f"timer({self.delay:g})"
        return name if path == "loop" else f"{path}/{name}"

    @property
    def key(self) -> Key:
        """Who this is, unique in an execution."""
        return "op", self.number

    @property
    def path(self) -> str:
        """The path of the task that made it."""
        return lane_path(self._loop, self.owner)

    @property
    def lane(self) -> int:
        """The number of the task that made it, or -1."""
        return getattr(self.owner, "number", -1)

    @property
    def place(self) -> Place:
        """What it is in every execution; deadlines may be computed from the clock and are left out."""
        return _owner_name(self._loop, self.owner), "sleep" if self.sleep else "timer"


class NoMore:
    """The option that ends the arrivals of an iteration."""

    key: Key = ("no more", 0)
    path = "loop"
    lane = -1
    place: Place = ("no more",)
    interesting = False

    def __str__(self) -> str:
        return "no more"


NO_MORE = NoMore()
