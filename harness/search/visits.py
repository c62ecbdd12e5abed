"""What an expansion is asked and what it answers, as plain values that go from process to process.

Owns prefixes and visits; must not know how an execution is watched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.model.choice import ChoiceKind
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.certificate import Mode
from harness.search.states import Pending, Plan


@dataclass(frozen=True, slots=True)
class Prefix:
    """What to replay.

    members: numbers of the tasks that were in sets where it leaves what was explored. state: the fingerprint there,
    or b"".
    """

    plan: Plan = ()
    members: frozenset[int] = frozenset()
    state: bytes = b""


def prefix_of(item: Pending) -> Prefix:
    """Return what must be replayed to try a pending option."""
    return Prefix(item.plan) if item.node is None else Prefix(item.plan, item.node.members, item.node.state)


@dataclass(frozen=True, slots=True)
class Learned:
    """What an execution showed since the choice point before.

    groups: the number of a set order, and tasks that may have shared a set under it. limits: what took a choice away.
    unseen: types that a fingerprint cannot read. moments: of runs, as far as they are more than were known.
    """

    groups: tuple[tuple[int, frozenset[int]], ...] = ()
    limits: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    moments: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Met:
    """A choice point that was met after the prefix.

    place: its position among the steps after the prefix. state: its fingerprint, or b"" where none is taken.
    members: numbers of the tasks in sets. order: the number of the set order. faults: how many kinds of fault there
    are when it is about a moment, of the run ``subject``; else 0.
    """

    kind: ChoiceKind
    place: int
    options: int
    state: bytes
    members: frozenset[int]
    order: int
    learned: Learned
    subject: str = ""
    faults: int = 0


@dataclass(frozen=True, slots=True)
class Visit:
    """What the expansion of a prefix came to.

    steps: the choices after the prefix. known: whether it ended at the last choice point, because its state was known.
    outcome: what it broke, when it ran to its end. learned: what it showed after the last choice point.
    """

    steps: Plan
    met: tuple[Met, ...]
    known: bool = False
    outcome: tuple[tuple[str, str], ...] = ()
    learned: Learned = field(default_factory=Learned)
    diverged: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """How prefixes are expanded: in which mode, up to which rung, in which discipline."""

    mode: Mode
    rung: Rung
    discipline: Discipline = "turns"
