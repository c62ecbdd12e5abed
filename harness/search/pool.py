"""Units of work that processes share: what they are, what they work on, and where they can be run.

Owns the interface between a search and whatever runs its units; must not know processes, nor what a unit does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from harness.search.target import Runner, Target


class Recipe(Protocol):
    """How to make a target in any process: a plain value, which can be pickled and compared."""

    def target(self) -> Target:
        """Return the target; raises UsageError where it cannot be made."""
        ...


class Unit(Protocol):
    """A part of a search: a plain value, which can be pickled.

    What it returns is one, too, and depends on nothing but the unit and the target, whoever runs it and how often.
    """

    def run(self, bench: Bench, /) -> Any:
        """Do the work with the target that is open on ``bench``."""
        ...


class Pool(Protocol):
    """Runs units of several searches, one after another, in other processes.

    kin: whether its processes read states as this one does, because they descend from it. unit_s: about how many
    seconds a unit should take, so that its way there and back costs little beside it.
    """

    kin: bool
    unit_s: float

    @property
    def jobs(self) -> int:
        """How many units can be under way at a time."""
        ...

    @property
    def room(self) -> int:
        """How many units it takes at the moment, so that nobody has to wait for work."""
        ...

    def submit(self, recipe: Recipe, unit: Unit) -> int:
        """Take a unit; return its number."""
        ...

    def next(self) -> tuple[int, Any]:
        """Wait until any unit is done; return its number and what it came to, once for each unit.

        Raises WorkerError for a unit that cannot be done, and KeyboardInterrupt.
        """
        ...

    def forget(self, numbers: Collection[int] | None = None) -> None:
        """Drop these units, or all; those that are under way end soon."""
        ...


@dataclass(frozen=True, slots=True)
class Shared:
    """Who takes part in a search, and how they make its target."""

    pool: Pool
    recipe: Recipe


class Answers:
    """Units that a pool does, and what they came to, in whatever order somebody asks."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._done: dict[int, Any] = {}

    def submit(self, recipe: Recipe, units: Sequence[Unit]) -> list[int]:
        """Let the pool do ``units``; return their numbers."""
        return [self._pool.submit(recipe, unit) for unit in units]

    def wait(self, number: int) -> Any:
        """Return what a unit came to, once."""
        while number not in self._done:
            found, answer = self._pool.next()
            self._done[found] = answer
        return self._done.pop(number)

    def done(self, numbers: Sequence[int]) -> Iterator[Any]:
        """Yield what is known of some units."""
        yield from (self._done.pop(number) for number in numbers if number in self._done)

    def drop(self, numbers: Sequence[int]) -> None:
        """Want nothing more of these units."""
        self._pool.forget(numbers)
        for number in numbers:
            self._done.pop(number, None)


class Bench:
    """A target that is open in this process, and what units keep there for the next one."""

    def __init__(self, target: Target) -> None:
        self._stack = ExitStack()
        self._kept: dict[Any, Any] = {}
        self.runner: Runner = self._stack.enter_context(target.open())

    def kept(self, key: Any, make: Callable[[], AbstractContextManager[Any]]) -> Any:
        """Return what was kept as ``key``, or enter what ``make`` returns and keep it."""
        if key not in self._kept:
            self._kept[key] = self._stack.enter_context(make())
        return self._kept[key]

    def close(self) -> None:
        """Close everything that was kept, and the target."""
        self._stack.close()
