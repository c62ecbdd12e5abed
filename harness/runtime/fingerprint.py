"""State fingerprints: what a loop that waits for a choice can still depend on, as one digest.

Owns the canonical walk over tasks, coroutines, queues and what they reach; must not know searches.

Coroutines cannot be copied, but they can be read: ``gc.get_referents`` yields their locals and their
evaluation stack. Objects are numbered by first visit, sets have no order, futures are their state, values of
the virtual clock are their rank, seeded ids are numbered by first occurrence. Two loops with the same digest
go on alike, as far as the walk can see; ``Walk.unseen`` names what it cannot.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from harness.model.rung import Rung
from harness.runtime import hidden, readers
from harness.runtime.arrivals import alive
from harness.runtime.identity import path_of
from harness.runtime.lanes import turn_task
from harness.runtime.texts import Texts
from harness.runtime.waits import live_tasks

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# Deadlines that are closer than this to each other are ordered as in the execution that was explored.
TIME_GRID_S = 1e-4


class Walk:
    """One walk; ``out`` is the state as a list of plain values.

    unseen: names of types whose state the walk cannot read; it grows.
    """

    def __init__(self, loop: ControlledLoop, unseen: set[str]) -> None:
        self.loop = loop
        self.out: list[Any] = []
        self.unseen = unseen
        self._numbers: dict[int, int] = {}
        self._queue: list[Any] = []  # keeps what was met alive, so that no address is used twice
        self._texts = Texts()
        self.private: list[Any] = []  # sets whose order nobody can tell
        self.members: set[int] = set()  # numbers of the tasks that are in sets, or keys of dicts

    def put(self, *values: Any) -> None:
        """Append plain values."""
        self.out.extend(values)

    def ref(self, value: Any) -> None:
        """Append ``value`` itself when it is plain, and its number otherwise; it is then visited once."""
        kind = type(value)
        if kind in readers.INLINE:
            if kind is str or kind is float:
                self._texts.put(self.out, value)
            else:
                self.out.append(value)
            return
        # Addresses serve within one walk, over objects that it keeps alive; none of them gets into the digest.
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._queue)
            self._queue.append(value)
        self.out.append(("#", number))

    def refs(self, values: Iterable[Any]) -> None:
        """Append several values and where they end."""
        for value in values:
            self.ref(value)
        self.out.append(";")

    def digest(self) -> bytes:
        """Visit everything that was mentioned and return the digest."""
        done = 0
        while done < len(self._queue):
            value = self._queue[done]
            done += 1
            handler = readers.HANDLERS.get(type(value)) or readers.find_handler(value)
            try:
                handler(self, value)
            except Exception as error:  # reading runs code of the program: what raises there cannot be read
                name = f"{type(value).__module__}.{type(value).__qualname__}"
                self.unseen.add(f"{name} ({type(error).__name__}: {error})")
        self._texts.rank(self.out)
        return hashlib.blake2b(repr(self.out).encode(errors="surrogatepass"), digest_size=16).digest()


def fingerprint(loop: ControlledLoop, extra: Any, *, unseen: set[str]) -> tuple[bytes, frozenset[int]]:
    """Return the digest of ``loop`` at a choice of an arrival or a lane, and of ``extra``.

    b"" when something of it cannot be read: such a state is like no other. ``unseen`` then grows by the types.
    And the numbers of the tasks that are in sets, or keys of dicts, whose order a set order may decide.
    """
    walk = Walk(loop, set())
    order = getattr(loop, "set_order", None) or getattr(loop, "set_order_mask", 0)
    _, drawn, gauss = random.getstate()
    # The hash of numbers is the same in every process; that of None is not, before Python 3.12.
    walk.put(str(order), loop.batch_left, hash(drawn), gauss)
    _put_ready(walk)
    _put_pending(walk)
    live = sorted(live_tasks(loop), key=lambda task: (path_of(loop, task), getattr(task, "number", 0)))
    walk.refs(live)
    walk.ref(loop.scratch)
    walk.ref(extra)
    walk.refs((loop._exception_handler, loop._task_factory, loop._debug))  # type: ignore[attr-defined]
    hidden.put_process(walk)
    digest = walk.digest()
    unseen |= walk.unseen
    return b"" if walk.unseen else digest, frozenset(walk.members)


def _put_ready(walk: Walk) -> None:
    """Append the ready queue; in relaxed schedules the order of neighbouring turns is still to be chosen."""
    loop = walk.loop
    relaxed = loop.settings.rung is Rung.RELAXED
    turns: list[Any] = []

    def end_of_turns() -> None:
        if relaxed:
            turns.sort(key=lambda handle: path_of(loop, turn_task(handle)))
        walk.refs(turns)
        turns.clear()

    for handle in loop._ready:  # type: ignore[attr-defined]
        if handle._cancelled:
            continue
        if turn_task(handle) is not None:
            turns.append(handle)
            continue
        end_of_turns()
        walk.ref(handle)
    end_of_turns()


def _put_pending(walk: Walk) -> None:
    """Append parked ops by name, jobs also by age, and timers by deadline, as seconds from now."""
    loop = walk.loop
    parked = [op for op in loop.parked if alive(op)]
    age = {op: rank for rank, op in enumerate(parked)}
    iteration = getattr(loop, "iteration", 0)
    for op in sorted(parked, key=lambda op: (str(op), op.number)):
        walk.put(op.name, op.kind, op.rank, op.early, op.interesting, max(0, getattr(op, "ripe", 0) - iteration))
        walk.put(age[op] if op.kind == "job" else "")
        walk.refs((op.owner, op.target, op.deliver, getattr(op, "pool", None)))
    walk.refs(loop.countdowns)
    now_s = loop.now() if hasattr(loop, "now") else loop.time()
    timers: Any = loop._scheduled  # type: ignore[attr-defined]
    for timer in sorted(timers, key=lambda timer: (timer._when, timer.number)):
        if timer._cancelled:
            continue
        left = round((timer._when - now_s) / TIME_GRID_S)
        walk.put(timer.sleep, max(0, left) if timer.sleep else left, timer.rank, timer.early)
        walk.ref(timer)
