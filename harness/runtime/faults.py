"""Faults from outside: something happens to a run at a moment that the search chooses.

Owns the moments of a run and what a crash leaves; must not know workflows.

A moment is the start of an iteration while the run is going on, and the time between two arrivals at a loop that has
nothing to run: each await point of the run lies between two of them, so each is a place where a cancellation or a
crash can fall, and so is the gap between the effect of a job and the news of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# How many moments a run is assumed to have until one was seen to its end.
UNKNOWN_MOMENTS = 1_000
# How much later a fault is tried that falls into no storage operation, or of a kind that is worth less.
LATER = 4


class Moments(Sequence[str]):
    """The options of a fault that falls at a moment: never, then each kind at moment 1, each at 2, and so on.

    The value of an option does not depend on how many moments there are, so a schedule replays in a process
    that has not yet seen the run.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        count: int,
        *,
        urgent: Callable[[], Collection[int]] = tuple[int, ...],
        later: Collection[str] = (),
    ) -> None:
        """urgent: returns the moments that are worth trying first, as far as they are known when it is asked.

        later: kinds that are worth less than the others.
        """
        self._kinds = tuple(kinds)
        self._count = count
        self._urgent = urgent
        self._later = later

    def __len__(self) -> int:
        return 1 + len(self._kinds) * self._count

    @property
    def kinds(self) -> int:
        """How many kinds of fault there are."""
        return len(self._kinds)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        chosen = self.decode(index)
        return "none" if chosen is None else f"{chosen[0]} at moment {chosen[1]}"

    def weight(self, value: int) -> int:
        """Return how much later than others option ``value`` should be tried; 0 for what is urgent."""
        moment, kind = divmod(value - 1, len(self._kinds))
        urgent = self._urgent()
        if moment + 1 in urgent:
            return LATER if self._kinds[kind] in self._later else 0
        return (value - 1) // 4 + (LATER if urgent else 0)

    def decode(self, value: int) -> tuple[str, int] | None:
        """Return the kind and the moment of an option, or None for "never"."""
        if value == 0:
            return None
        moment, kind = divmod(value - 1, len(self._kinds))
        return self._kinds[kind], moment + 1


class Countdown:
    """Calls an action at the n-th moment from now; counts on afterwards.

    n: 0 for never. watch: called at each moment with its number. name: of the run whose moments it counts, or "".
    invariant: ``passed`` is the number of moments so far.
    """

    __slots__ = ("action", "moment", "name", "passed", "watch")

    def __init__(
        self, moment: int, action: Callable[[], None], *, watch: Callable[[int], None] | None = None, name: str = ""
    ) -> None:
        self.moment = moment
        self.action = action
        self.watch = watch
        self.name = name
        self.passed = 0

    def tick(self) -> None:
        """Note that a moment has come."""
        self.passed += 1
        if self.watch is not None:
            self.watch(self.passed)
        if self.passed == self.moment:
            self.action()


class Fate:
    """What happens to one run from outside: chosen when it begins, ended with it."""

    def __init__(
        self,
        loop: ControlledLoop,
        name: str,
        *,
        kinds: Sequence[str],
        memory: dict[str, Any],
        later: Collection[str] = (),
    ) -> None:
        """name: of the run, for schedules. kinds: what may happen to it. memory: moments seen, by name.

        later: kinds that a search tries later.
        """
        self._loop = loop
        self._name = name
        self._memory = memory
        self.kind = ""
        self._countdown: Countdown | None = None
        self._moment = 0
        self._saving: list[int] = []
        options = Moments(
            kinds,
            memory.get(name, UNKNOWN_MOMENTS),
            urgent=lambda: memory.get(f"{name}: in a storage operation", ()),
            later=later,
        )
        if kinds:
            chosen = options.decode(loop.choose("fault", options, subject=name, interesting=True))
            if chosen is not None:
                self.kind, self._moment = chosen

    @property
    def countdown(self) -> Countdown | None:
        """The moments until it happens, from ``begin`` on."""
        return self._countdown

    def begin(self, action: Callable[[], None]) -> None:
        """Start to count; ``action`` is called at the chosen moment."""
        name = "" if self.kind else self._name
        self._countdown = Countdown(self._moment, action, watch=self._watch, name=name)
        self._loop.countdowns.append(self._countdown)

    def end(self) -> None:
        """Stop counting; remember how long a run lasts to which nothing happened."""
        countdown = self._countdown
        if countdown is None or countdown not in self._loop.countdowns:
            return
        self._loop.countdowns.remove(countdown)
        if not self.kind:
            self._memory[self._name] = max(self._memory.get(self._name, 0), countdown.passed)
            self._memory[f"{self._name}: in a storage operation"] = tuple(self._saving)

    def _watch(self, moment: int) -> None:
        if self._loop.interesting_tasks:
            # what happens at the moment before arrives behind the turn in which the operation begins
            self._saving.extend(early for early in (moment - 1, moment) if early not in self._saving)


def moments_shown(loop: ControlledLoop) -> dict[str, int]:
    """Return how many moments runs to which nothing happens have had, by name: also those that go on.

    The same for events of streams that nobody leaves, however their runs end.
    """
    shown = {name: seen for name, seen in loop.memory.items() if isinstance(seen, int)}
    passed = [(countdown.name, countdown.passed) for countdown in loop.countdowns if countdown.name]
    for name, seen in [*passed, *((name, len(events)) for name, events in loop.streams.items())]:
        shown[name] = max(shown.get(name, 0), seen)
    return shown


def remember_moments(loop: ControlledLoop) -> None:
    """Let later executions know of the moments of runs that have no end of their own here."""
    if loop.countdowns or "streams" in vars(loop):
        loop.memory.update(moments_shown(loop))


def crash(loop: ControlledLoop, survivor: asyncio.Future[Any]) -> None:
    """Let the process die, as far as the loop can: only what waits for ``survivor`` goes on.

    Everything that was ready, parked or scheduled is gone; no ``finally`` runs; tasks are kept from being
    freed until the execution is over, so that none of their clean-up has an effect in between.
    """
    survivors = _waiters(survivor)
    loop.graveyard.extend(task for task in asyncio.all_tasks(loop) if task not in survivors)
    ready: Any = loop._ready  # type: ignore[attr-defined]
    timers: Any = loop._scheduled  # type: ignore[attr-defined]
    loop.graveyard.extend([*ready, *loop.parked, *timers])
    ready.clear()
    loop.parked.clear()
    loop.early.clear()
    loop.held_timers.clear()
    loop.released.clear()
    timers.clear()
    loop.foreign.clear()
    asyncgens: Any = loop._asyncgens
    loop.graveyard.extend(asyncgens)
    asyncgens.clear()  # the end of the execution closes what is alive, and these are not
    survivor.set_result(None)


def _waiters(future: asyncio.Future[Any]) -> list[Any]:
    """Return the tasks whose turn comes when ``future`` is done."""
    callbacks = getattr(future, "_callbacks", None) or ()
    owners = [getattr(entry[0], "__self__", None) for entry in callbacks]
    return [owner for owner in owners if isinstance(owner, asyncio.Task)]
