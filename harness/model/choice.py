"""Choice points, and the one-method interface that answers them.

Owns what a scheduler sees and returns; must not know where a choice point comes from.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

ChoiceKind = Literal["arrival", "hold", "lane", "shape", "fault", "order", "members", "program"]

# Who an option is, unique in an execution: what it is ("lane", "op", "no more") and its number.
Key = tuple[str, int]
# What an option is in every execution of a program: the name of its coroutine, then instructions or a name.
Place = tuple[str | int, ...]
# The instruction of a coroutine that has not begun.
START = -1

# Options of a "hold" choice point, in this order: rank 0, rank 1, and the early arrival.
IN_TURN, HOLD, EARLY = 0, 1, 2


class ChoicePoint(NamedTuple):
    """A moment with two or more legal continuations.

    kind: what is decided. ``arrival``: which op is delivered next; ``hold``: the rank of an op that was
    just parked; ``lane``: which task runs its next turn; ``shape``: how a storage waits; ``fault``:
    whether a failure is injected; ``order``: how sets of tasks iterate; ``members``: how one set does, when it does;
    ``program``: what a generated program looks like.
    enabled: the options, default first; each has a stable ``str()`` that names it.
    index: how many choices this execution made before.
    now_s: virtual seconds since the execution began.
    subject: the op concerned, or None; ``str(subject)`` names it.
    interesting: the op belongs to a storage operation, a failure or a cancellation.
    """

    kind: ChoiceKind
    enabled: Sequence[Any]
    index: int  # type: ignore[assignment]  # a field, not tuple.index
    now_s: float
    subject: Any = None
    interesting: bool = False


@runtime_checkable
class Scheduler(Protocol):
    """Answers choice points; it lives for one execution."""

    def choose(self, point: ChoicePoint, /) -> int:
        """Pick the option that happens next.

        point: at least two options, default first; ``now_s`` in virtual seconds.
        Returns an index into ``point.enabled``. Source: Burckhardt et al., ASPLOS 2010, section 4.1.
        """
        ...


class Option(Protocol):
    """What the options of a ``lane`` or an ``arrival`` choice point have in common.

    key: who it is, unique in an execution. path: of the task that runs or waits, "" for the root, whose children
    leave it out. lane: that task's number, -1 for none. place: what it is in every execution; costly to ask for.
    """

    @property
    def key(self) -> Key: ...  # noqa: D102

    @property
    def path(self) -> str: ...  # noqa: D102

    @property
    def lane(self) -> int: ...  # noqa: D102

    @property
    def place(self) -> Place: ...  # noqa: D102

    @property
    def interesting(self) -> bool: ...  # noqa: D102


class Decision(NamedTuple):
    """One answered choice point that was not answered with its default.

    index: the position among the choices of the execution. value: the option taken (> 0).
    """

    index: int  # type: ignore[assignment]  # a field, not tuple.index
    value: int
    kind: ChoiceKind
    label: str
    option: str


def decisions_of(
    answers: Sequence[int], kinds: Sequence[ChoiceKind], labels: Mapping[int, tuple[str, str]]
) -> tuple[Decision, ...]:
    """Return the decisions among the answers of an execution. labels: of the subject and of the option, by index."""
    return tuple(
        Decision(index, value, kinds[index], *labels.get(index, ("", "")))
        for index, value in enumerate(answers)
        if value
    )


def option_label(point: ChoicePoint, value: int) -> str:
    """Name option ``value`` of ``point`` in a form that is the same in every process."""
    subject = "" if point.subject is None else f"{point.subject}: "
    return f"{subject}{point.enabled[value]}"


def point_label(point: ChoicePoint) -> str:
    """Name a choice point by its kind and its enabled set, the same in every process."""
    if point.subject is not None:
        return f"{point.kind} {point.subject}"
    return f"{point.kind} " + " | ".join(str(option) for option in point.enabled)


def draw_other(point: ChoicePoint, source: random.Random) -> int:
    """Answer a choice that is no question of order: the default half of the time, else any other option.

    A fault may offer a hundred moments; a scheduler that took any index would inject it in every execution.
    """
    if source.random() < 0.5:
        return 0
    return 1 + int(source.random() * (len(point.enabled) - 1))


def offers_options(point: ChoicePoint) -> bool:
    """Return whether the choice is which of several `Option`s runs or arrives next."""
    return point.kind in ("lane", "arrival") and not isinstance(point.enabled[0], str)
