"""The explored part of a choice tree, in which equal states are one node.

Owns nodes and what is counted over them; must not know how an execution is run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from harness.model.choice import ChoiceKind


class Step(NamedTuple):
    """One answered choice point: the value, out of how many options.

    forced: the search knows that the other options come to the same; it is then no deviation.
    """

    value: int
    options: int
    forced: bool = False


Plan = tuple[Step, ...]


@dataclass(slots=True, eq=False)
class Node:
    """A choice point that was met. children: what each option led to; None while nobody tried it.

    plan: the choices that first led here. members: numbers of the tasks that were in sets or keys of dicts.
    state: its fingerprint, or b"".
    """

    kind: ChoiceKind
    plan: Plan
    children: list[Node | Leaf | None] = field(default_factory=list)
    members: frozenset[int] = frozenset()
    state: bytes = b""


@dataclass(slots=True, eq=False)
class Leaf:
    """An execution that ended. same: not executed, because it is one of the schedules that were."""

    same: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """An option that was not tried yet. deviations: of the plan."""

    node: Node | None
    value: int
    plan: Plan

    @property
    def deviations(self) -> int:
        """How many choices are not the default."""
        return deviations_of(self.plan)


def deviations_of(plan: Plan) -> int:
    """Return how many choices of ``plan`` are not the default, nor forced."""
    return sum(1 for step in plan if step.value and not step.forced)


def values_of(plan: Plan) -> dict[int, int]:
    """Return ``plan`` as position to value, defaults left out."""
    return {index: step.value for index, step in enumerate(plan) if step.value}


def count_schedules(root: Node | Leaf | None) -> int:
    """Return how many schedules the explored part stands for: paths to a leaf, equal states counted each time.

    A state that is its own successor (a program that polls) counts once.
    """
    counts: dict[Node, int] = {}
    open_nodes: set[Node] = set()
    stack: list[tuple[Node | Leaf | None, bool]] = [(root, False)]
    while stack:
        place, closing = stack.pop()
        if place is None or isinstance(place, Leaf) or (not closing and place in counts):
            continue
        if closing:
            counts[place] = sum(_count(child, counts) for child in place.children)
            continue
        if place in open_nodes:
            continue
        open_nodes.add(place)
        stack.append((place, True))
        stack.extend((child, False) for child in place.children)
    return _count(root, counts)


def endless(root: Node | Leaf | None) -> list[Node]:
    """Return the states from which nothing that was tried leads to an end, those with the fewest choices first.

    An option that nobody tried may lead to one.
    """
    before: dict[Node, list[Node]] = {}
    ends: list[Node] = []
    todo = [root] if isinstance(root, Node) else []
    seen = set(todo)
    while todo:
        node = todo.pop()
        for child in node.children:
            if not isinstance(child, Node):
                ends.append(node)
                continue
            before.setdefault(child, []).append(node)
            if child not in seen:
                seen.add(child)
                todo.append(child)
    lively: set[Node] = set()
    while ends:
        node = ends.pop()
        if node not in lively:
            lively.add(node)
            ends.extend(before.get(node, ()))
    return sorted((node for node in seen if node not in lively), key=lambda node: len(node.plan))


def _count(place: Node | Leaf | None, counts: dict[Node, int]) -> int:
    if place is None:
        return 0
    return int(not place.same) if isinstance(place, Leaf) else counts.get(place, 0)
