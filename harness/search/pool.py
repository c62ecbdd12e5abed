"""Units of work that processes share: what they are, what they work on, and where they can be run.

Owns the interface between a search and whatever runs its units; must not know processes, nor what a unit does.
"""

from __future__ import annotations

from collections.abc import Callable
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

    kin: whether its processes read states as this one does, because they descend from it.
    """

    kin: bool

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

    def forget(self) -> None:
        """Drop every unit that was taken and is not done."""
        ...


@dataclass(frozen=True, slots=True)
class Shared:
    """Who takes part in a search, and how they make its target."""

    pool: Pool
    recipe: Recipe


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
