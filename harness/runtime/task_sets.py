"""Sets and dicts of tasks whose order is decided when somebody looks, and not when a member is hashed.

Owns the containers that take the place of a framework's own in exhaustive searches; must not know any framework.

A ``set`` of tasks iterates by their hashes, so a search has to choose an order of sets before the first task is
hashed and to explore everything once per order. Here the choice comes when the set is iterated, and only where the
orders differ in the members that matter (``uses``). What was seen of the order once stays so.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any

from harness.runtime.identity import SET_ORDERS, SetOrder, keep_hashes, path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.uses import that_matter

# Futures have no number; they come behind all tasks, in the order in which they were added.
_FUTURES = 1 << 20


class Arrangement:
    """An option: the members that matter, in the order in which the set yields them."""

    __slots__ = ("_loop", "members")

    def __init__(self, loop: ControlledLoop, members: tuple[Any, ...]) -> None:
        self._loop = loop
        self.members = members

    def __str__(self) -> str:
        return "set of " + ", ".join(path_of(self._loop, member) for member in self.members)


class TaskSet(MutableSet[Any]):
    """A set of tasks and futures of one loop. It is no ``set``: C code would copy one past any method.

    orders: the orders of sets that agree with what was seen, creation order first.
    """

    def __init__(self, loop: ControlledLoop, members: Iterable[Any] = ()) -> None:
        self._loop = loop
        self._numbers: dict[Any, int] = {}
        self._futures = itertools.count(_FUTURES)
        self.orders: tuple[SetOrder, ...] = SET_ORDERS
        self.update(members)

    @classmethod
    def _from_iterable(cls, items: Iterable[Any]) -> set[Any]:
        return set(items)  # what an operator gives is a plain set

    @property
    def members(self) -> list[Any]:
        """The members by age."""
        return list(self._numbers)

    def __contains__(self, item: object) -> bool:
        return item in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, value: Any) -> None:
        """Add a task or a future."""
        if value not in self._numbers:
            number = getattr(value, "number", None)
            self._numbers[value] = next(self._futures) if number is None else number

    def discard(self, value: Any) -> None:
        """Remove a member, if it is one."""
        self._numbers.pop(value, None)

    def update(self, *others: Iterable[Any]) -> None:
        """Add the members of ``others``."""
        for other in others:
            for value in other:
                self.add(value)

    def copy(self) -> set[Any]:
        """Return a plain set of the members."""
        return set(self)

    def union(self, *others: Iterable[Any]) -> set[Any]:
        """Return a plain set of all members."""
        return set(self).union(*others)

    def difference(self, *others: Iterable[Any]) -> set[Any]:
        """Return a plain set of the members that are in none of ``others``."""
        return set(self).difference(*others)

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(self._in_order(that_matter(sys._getframe(1), self.members)))

    def _iterate(self, members: list[Any]) -> Iterator[Any]:
        """Yield ``members`` as a set does, which must not change meanwhile."""
        for member in (*members, None):
            if len(self._numbers) != len(members):
                raise RuntimeError("Set changed size during iteration")
            if member is not None:
                yield member

    def _in_order(self, matter: list[Any]) -> list[Any]:
        """Return the members, those that ``matter`` in an order that is a choice where sets may differ in it."""
        numbers = {
            number: member for member, number in self._numbers.items() if any(member is other for other in matter)
        }
        arranged: dict[tuple[int, ...], list[SetOrder]] = {}
        for order in self.orders:
            arranged.setdefault(tuple(sorted(numbers, key=order.hash_of)), []).append(order)
        options = [Arrangement(self._loop, tuple(numbers[number] for number in ranked)) for ranked in arranged]
        chosen = self._loop.choose("members", options, subject="tasks", interesting=True) if len(options) > 1 else 0
        self.orders = tuple(list(arranged.values())[chosen])
        rest = [member for member, number in self._numbers.items() if number not in numbers]
        return [*rest, *options[chosen].members]


class TaskDict(MutableMapping[Any, Any]):
    """A dict with tasks and futures as keys. It is no ``dict``, whose keys C code puts into a set unseen."""

    def __init__(self) -> None:
        self.items_by_age: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        return self.items_by_age[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items_by_age[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.items_by_age[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items_by_age)

    def __len__(self) -> int:
        return len(self.items_by_age)


keep_hashes(TaskSet.__contains__, TaskSet.add, TaskSet.discard)
keep_hashes(TaskDict.__getitem__, TaskDict.__setitem__, TaskDict.__delitem__)


@contextlib.contextmanager
def groups_keep_task_sets() -> Iterator[None]:
    """Let ``asyncio.TaskGroup`` keep its tasks in a ``TaskSet`` where orders are searched exhaustively."""
    original = asyncio.TaskGroup.__init__

    def __init__(self: Any) -> None:
        original(self)
        loop = searched_loop()
        if loop is not None and type(self._tasks) is set:
            self._tasks = TaskSet(loop)

    asyncio.TaskGroup.__init__ = __init__  # type: ignore[method-assign]
    try:
        yield
    finally:
        asyncio.TaskGroup.__init__ = original  # type: ignore[method-assign]


def searched_loop() -> ControlledLoop | None:
    """Return the running loop if its schedules are searched exhaustively, or replayed from such a search."""
    loop = asyncio._get_running_loop()
    return loop if isinstance(loop, ControlledLoop) and loop.settings.discipline == "turns" else None
