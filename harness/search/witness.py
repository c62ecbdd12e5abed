"""Witnesses: one execution in full, with what made each turn ready, where its task was, and what was parked.

Owns what is seen while the loop runs; must not know which of it matters, nor how it is worded.
"""

from __future__ import annotations

import traceback
from collections import deque
from dataclasses import dataclass
from typing import Any

from harness.model.choice import EARLY, HOLD, ChoicePoint, Scheduler
from harness.model.explanation import Frame
from harness.model.outcome import Execution, Turn
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.runtime.identity import path_of
from harness.runtime.lanes import turn_task
from harness.runtime.ops import is_plumbing
from harness.runtime.waits import frames_of
from harness.search.recording import Planned
from harness.search.target import Runner

_MAX_FRAMES = 20
_MAX_ENTRIES = 2_000


@dataclass(eq=False, slots=True)
class Seen:
    """One entry of a trace and what is known of it. op: number of the op that arrived in it, or 0."""

    entry: Turn | None = None
    cause: Seen | None = None
    op: int = 0
    stack: tuple[Frame, ...] = ()


@dataclass(eq=False, slots=True)
class SeenOp:
    """An op. owner: path of the task that waits for it, "loop" for none. parked: what was going on at that moment."""

    name: str
    kind: str
    owner: str
    where: str
    parked: Seen | None
    held: bool = False
    early: bool = False


class Witness:
    """Wraps a scheduler and watches its execution; it lives for one.

    entries: in the order of the trace. ops: by number. deviates: by choice, the number of the op that is held or early.
    """

    def __init__(self, inner: Scheduler) -> None:
        self._inner = inner
        self.ran = getattr(inner, "ran", None)
        self._inner_heed = getattr(inner, "heed", None)
        self._loop: Any = None
        self._now: Seen | None = None
        self._task: Any = None
        self._causes: dict[Any, Seen | None] = {}
        self.entries: list[Seen] = []
        self.ops: dict[int, SeenOp] = {}
        self.deviates: dict[int, int] = {}

    def choose(self, point: ChoicePoint, /) -> int:
        """Return what the inner scheduler chooses, and note what is held and what comes early."""
        value = self._inner.choose(point)
        if point.kind == "hold" and value and (number := getattr(point.subject, "number", 0)):
            op = self._note_op(point.subject)
            op.held, op.early = value == HOLD, value == EARLY
            self.deviates[point.index] = number
        return value

    def begin(self, loop: Any) -> None:
        """Watch the ready queue of ``loop``."""
        self._loop = loop
        loop._ready = _Queue(self, loop._ready)

    def queued(self, handle: Any) -> None:
        """Note what made ``handle`` ready."""
        self._causes[handle] = self._now

    def taken(self, handle: Any) -> None:
        """Note that a turn or a callback begins."""
        self._note_ops()
        self._now = Seen(cause=self._causes.pop(handle, None))
        self._task = turn_task(handle)
        if self._task is not None:
            self._now.stack = _stack_of(self._task)

    def heed(self, entry: Turn) -> None:
        """Put an entry into its place."""
        if self._inner_heed is not None:
            self._inner_heed(entry)
        if entry.lane.startswith("run ") or entry.what == "held":
            seen = Seen(entry)
            self.entries.append(seen)
            turn_is_over = self._now is None or self._now.entry is not None
            if turn_is_over and entry.what.startswith("run."):
                self._now = seen  # something happens to a run from outside, and what follows comes of it
        elif entry.what.startswith("deliver "):
            self._note_ops()
            self._now = Seen(entry, op=self._arrives(entry))
            self.entries.append(self._now)
        else:
            self._end_turn(entry)

    def _end_turn(self, entry: Turn) -> None:
        seen = self._now if self._now is not None and self._now.entry is None else Seen()
        seen.entry = entry
        place = len(self.entries)
        # what was noted in the course of a turn comes behind it, as in the trace
        while place and self._is_noted_in(self.entries[place - 1].entry, entry.number):
            place -= 1
        self.entries.insert(place, seen)
        if self._task is not None:
            seen.stack = _stack_of(self._task) or seen.stack
        self._note_ops()

    @staticmethod
    def _is_noted_in(entry: Turn | None, number: int) -> bool:
        return entry is not None and entry.number == number and entry.lane.startswith("run ")

    def _note_ops(self) -> None:
        for op in (*self._loop.parked, *self._loop._scheduled):
            self._note_op(op)

    def _note_op(self, op: Any) -> SeenOp:
        """Keep what is known of ``op``; it was parked just now unless it is known."""
        if op.number not in self.ops:
            owner = path_of(self._loop, op.owner)
            self.ops[op.number] = SeenOp(str(op), op.kind, owner, op.site, self._now, held=op.kind == "turn")
        return self.ops[op.number]

    def _arrives(self, entry: Turn) -> int:
        """Return the number of the op of that name that has just left what is parked."""
        name = entry.what.removeprefix("deliver ")
        gone = {seen.op for seen in self.entries}
        gone.update(op.number for op in (*self._loop.parked, *self._loop._scheduled))
        for number, op in self.ops.items():
            if op.name == name and number not in gone:
                return number
        # parked and delivered between two looks, as the news that a job is done can be
        number = -len(self.ops) - 1
        self.ops[number] = SeenOp(name, "done", name.rpartition("/")[0] or "loop", entry.where, self._now)
        return number


def unwitnessed(execution: Execution) -> Witness:
    """Return what is known of an execution that nobody watched: the first entries of its trace."""
    witness = Witness(Planned())
    witness.entries = [Seen(entry) for entry in execution.trace[:_MAX_ENTRIES]]
    return witness


class _Queue(deque[Any]):
    """A ready queue that tells a witness of what comes and goes; in every other way it is a deque."""

    def __init__(self, witness: Witness, handles: Any) -> None:
        super().__init__(handles)
        self._witness = witness

    def append(self, handle: Any) -> None:
        self._witness.queued(handle)
        super().append(handle)

    def popleft(self) -> Any:
        handle = super().popleft()
        self._witness.taken(handle)
        return handle


def witnessed(
    runner: Runner, scheduler: Scheduler, *, discipline: Discipline = "ranks", rung: Rung | None = None
) -> tuple[Execution, Witness]:
    """Execute once, with a trace and a witness."""
    witness = Witness(scheduler)
    runner.session.on_begin.append(witness.begin)
    try:
        return runner.run(witness, tracing=True, discipline=discipline, rung=rung), witness
    finally:
        runner.session.on_begin.remove(witness.begin)


def _stack_of(task: Any) -> tuple[Frame, ...]:
    """Return the program's frames of a task, outermost first: where it waits, or where it raised."""
    if not task.done():
        frames = [frame for frame in frames_of(task) if not is_plumbing(frame.f_globals.get("__name__", ""))]
        found = [Frame(f"{frame.f_code.co_filename}:{frame.f_lineno}", frame.f_code.co_name) for frame in frames]
    elif task.cancelled() or task._exception is None:
        found = []
    else:
        walk = traceback.walk_tb(task._exception.__traceback__)
        raised = [(frame, line) for frame, line in walk if not is_plumbing(frame.f_globals.get("__name__", ""))]
        found = [Frame(f"{frame.f_code.co_filename}:{line}", frame.f_code.co_name) for frame, line in raised]
    return tuple(found[-_MAX_FRAMES:])
