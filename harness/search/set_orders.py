"""Set orders that a search need not try, because no two tasks that may share a set change places.

Owns which tasks may have shared a set, as groups; must not know how an execution is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# A set starts with a table of 8 places and grows by factors of 4, or 2 when it is large (Objects/setobject.c).
TABLE_SIZES = tuple(1 << bits for bits in range(3, 13))


class SetOrders:
    """The orders of one search. A group is every task that was in a set at one state, or hashed until the next."""

    def __init__(self, options: Sequence[Any]) -> None:
        """options: all orders, creation order first."""
        self._options = options
        self._groups: dict[int, set[frozenset[int]]] = {}
        self._explored = {0}

    def add(self, number: int, group: frozenset[int]) -> None:
        """Note a group that was met under order ``number``. -1 stands for a future."""
        if len(group) > 1 or -1 in group:
            self._groups.setdefault(number, set()).add(group)

    def is_new(self, number: int) -> bool:
        """Return whether some group iterates in a new way under order ``number``; it then counts as explored."""
        if not self.differs(number):
            return False
        self._explored.add(number)
        return True

    def differs(self, number: int) -> bool:
        """Return whether some group that was met iterates in a new way under order ``number``.

        An order that agrees with an explored one on all groups of that one leads to the same executions.
        """
        return not any(
            all(self._agree(group, other, number) for group in self._groups.get(other, ()))
            for other in sorted(self._explored)
        )

    def _agree(self, group: frozenset[int], one: int, other: int) -> bool:
        if -1 in group:
            return False
        for size in TABLE_SIZES:
            first = _iterated(group, self._options[one], size)
            if first is None or first != _iterated(group, self._options[other], size):
                return False
        return True


def _iterated(numbers: frozenset[int], order: Any, size: int) -> list[int] | None:
    """Return ``numbers`` in the order in which a set with a table of ``size`` places yields them.

    None when two share a place: then the order depends on the history of the set.
    """

    def place(number: int) -> int:
        hash_value = order.hash_of(number) if hasattr(order, "hash_of") else number ^ order
        return int(hash_value) % size

    places = [place(number) for number in numbers]
    return sorted(numbers, key=place) if len(set(places)) == len(places) else None
