"""What an execution leaves behind: its ending, its trace, its journal, and what an oracle says of it.

Owns the record types; must not know the loop that fills them in.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from harness.model.rung import Rung
from harness.model.schedule import Schedule

EndingKind = Literal["returned", "raised", "deadlock", "turn-limit", "stalled", "crashed", "uncontrolled"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended.

    value: what it returned. error: what it raised. detail: for a deadlock, a turn limit or a stalled
    turn, who waits for what, several lines.
    """

    kind: EndingKind
    value: Any = None
    error: BaseException | None = None
    detail: str = ""

    def __str__(self) -> str:
        if self.error is not None and self.kind == "raised":
            return f"raised {type(self.error).__name__}: {self.error}"
        return self.kind


class Turn(NamedTuple):
    """One entry of a trace: a turn that ran or an op that was delivered.

    number: turns since the execution began. now_s: virtual seconds. lane: the task's path, or "loop".
    what: a verb with its object, the same in every process and on every supported Python.
    where: ``file:line``, or ""; it is shown and is no part of the digest.
    """

    number: int
    now_s: float
    lane: str
    what: str
    where: str = ""


class Deviated(NamedTuple):
    """Where the trace was when a choice was made that is not the default.

    choice: its index among the choices. position: of the entry that came next. inside: in the course of a turn, whose
    entry stands before that position.
    """

    choice: int
    position: int
    inside: bool


class Event(NamedTuple):
    """One entry of the journal: a fact about a workflow that an oracle may judge.

    kind: such as ``step.completed`` or ``save.committed``. run: ordinal of the run, 0 for the first.
    subject: a step's or an op's name. data: details, keyed by text.
    """

    turn: int
    now_s: float
    kind: str
    run: int
    subject: str
    data: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple default; nobody writes to it)


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: the oracle's name, one sentence, the turn at which it showed."""

    oracle: str
    message: str
    turn: int


@dataclass(slots=True)
class Execution:
    """One run of one program under one scheduler.

    make_schedule: builds the schedule when somebody asks for it, which is seldom. choices: how many choice points
    it met. rung: the least assumption that its schedule needed.
    inversions: pairs of sleeps (and their source lines) that completed against their deadlines.
    abandoned: names of tasks and generators that would not end when they were cancelled after the ending.
    unhandled: errors that asyncio would have logged, such as "Task exception was never retrieved", one line each.
    deviated: one for each decision of the schedule, in their order; empty when no trace was kept.
    """

    ending: Ending
    make_schedule: Callable[[], Schedule]
    choices: int
    turns: int
    now_s: float
    rung: Rung
    trace: tuple[Turn, ...] = ()
    journal: tuple[Event, ...] = ()
    inversions: tuple[tuple[str, str], ...] = ()
    abandoned: tuple[str, ...] = ()
    unhandled: tuple[str, ...] = ()
    deviated: tuple[Deviated, ...] = ()
    violations: tuple[Violation, ...] = ()
    used_real_io: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    _schedule: Schedule | None = None

    @property
    def schedule(self) -> Schedule:
        """The choices that were made."""
        if self._schedule is None:
            self._schedule = self.make_schedule()
        return self._schedule


def digest_trace(trace: tuple[Turn, ...]) -> str:
    """Return 8 hex digits that are equal for traces that are equal turn by turn.

    Source lines and times are left out.
    """
    return _crc(f"{turn.number} {turn.lane} {turn.what}" for turn in trace)


def digest_facts(trace: tuple[Turn, ...]) -> str:
    """Return 8 hex digits that are equal for traces in which the same things happened in the same order.

    Left out is how many turns asyncio itself takes: ``gather`` of finished futures wakes its waiter through
    callbacks in Python 3.11 and without any since 3.12 (Lib/asyncio/tasks.py).
    """
    return _crc(f"{turn.lane} {turn.what}" for turn in trace if turn.what != "waits" and turn.what[:5] != "call ")


def _crc(lines: Iterable[str]) -> str:
    return f"{zlib.crc32(chr(10).join(lines).encode()):08x}"


def first_difference(one: tuple[Turn, ...], other: tuple[Turn, ...]) -> tuple[str, str] | None:
    """Return the first pair of differing entries as text, or None when the traces are equal."""
    for first, second in zip(one, other, strict=False):
        if (first.number, first.lane, first.what) != (second.number, second.lane, second.what):
            return f"turn {first.number} {first.lane} {first.what}", f"turn {second.number} {second.lane} {second.what}"
    if len(one) == len(other):
        return None
    longer = one if len(one) > len(other) else other
    extra = longer[min(len(one), len(other))]
    text = f"turn {extra.number} {extra.lane} {extra.what}"
    return (text, "(ended)") if longer is one else ("(ended)", text)
