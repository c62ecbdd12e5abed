"""The programs that every tool runs: plain asyncio, with no import of any tool.

Owns the programs, whole and in parts; must not know how a tool is driven. A case whose program is a set of tasks also
has ``parts``, which makes its coroutines and a check, for a tool that schedules only the coroutines that it is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import theirs

import benchmarks.programs as programs

Program = Callable[[], Coroutine[Any, Any, Any]]
Wait = Callable[[str], Awaitable[Any]]
Parts = tuple[list[Coroutine[Any, Any, Any]], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and the same as parts where it is made of tasks that exist from the beginning.

    program: called anew for each execution. remote: makes the program of a wait for something outside; such a wait
    is the tool's own way to say "this takes an unknown time". remote_parts: makes the parts of such a wait.
    """

    program: Program | None = None
    parts: Callable[[], Parts] | None = None
    remote: Callable[[Wait], Program] | None = None
    remote_parts: Callable[[Wait], Parts] | None = None

    def whole(self, wait: Wait) -> Program:
        """Return the program; ``wait`` is the tool's own wait of unknown length."""
        if self.remote is not None:
            return self.remote(wait)
        if self.remote_parts is not None:
            return gathered(partial(self.remote_parts, wait))
        return self.program or gathered(self.parts)


def gathered(parts: Callable[[], Parts] | None) -> Program:
    """Return the program that gathers the parts and then checks."""
    assert parts is not None

    async def program() -> None:
        coroutines, check = parts()
        await asyncio.gather(*coroutines)
        check()

    return program


def nothing() -> None:
    """Check nothing: every order of the program is right."""


# -- the benchmark programs, see benchmarks/programs.py ---------------------------------------------


def taken_apart(program: Program) -> Callable[[], Parts]:
    """Return the tasks of a benchmark program: each waits to be born, and the parent bears one after the other."""

    def parts() -> Parts:
        born: dict[str, Any] = {}

        async def keep(*coroutines: Any, then: Any = None, gap: int = programs.GAP) -> None:
            born.update(coroutines=coroutines, then=then, gap=gap)

        with mock.patch.object(programs, "run_tasks", keep), contextlib.suppress(StopIteration):
            program().send(None)
        births = [asyncio.Event() for _ in born["coroutines"]]

        async def parent() -> None:
            for birth in births:
                for _ in range(born["gap"]):
                    await asyncio.sleep(0)
                birth.set()
            if born["then"] is not None:
                await born["then"]

        async def child(birth: asyncio.Event, coroutine: Coroutine[Any, Any, Any]) -> None:
            await birth.wait()
            await coroutine

        return [parent(), *map(child, births, born["coroutines"])], nothing

    return parts


# -- programs that only yield, for speed ------------------------------------------------------------


def grid(tasks: int, awaits: int) -> Callable[[], Parts]:
    """Tasks that yield; each order is as good as another."""

    async def worker() -> None:
        for _ in range(awaits):
            await asyncio.sleep(0)

    return lambda: ([worker() for _ in range(tasks)], nothing)


# -- clean programs, to be proved -------------------------------------------------------------------


def locks(tasks: int) -> Callable[[], Parts]:
    """Tasks that take one lock once."""

    def parts() -> Parts:
        lock = asyncio.Lock()

        async def take() -> None:
            async with lock:
                pass

        return [take() for _ in range(tasks)], nothing

    return parts


def increments(tasks: int) -> Callable[[], Parts]:
    """Increments, each a read and a write in two turns; what they add up to is not checked."""

    def parts() -> Parts:
        value = 0

        async def add() -> None:
            nonlocal value
            seen = value
            await asyncio.sleep(0)
            value = seen + 1

        return [add() for _ in range(tasks)], nothing

    return parts


# -- programs that stock asyncio never breaks -------------------------------------------------------


async def call_soon_order() -> None:
    """Callbacks run in the order of call_soon: documented."""
    loop = asyncio.get_running_loop()
    order: list[int] = []
    for number in range(5):
        loop.call_soon(order.append, number)
    for _ in range(3):
        await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    assert order == list(range(5)), order


async def done_callback_order() -> None:
    """The callbacks of a future are called in the order in which they were added: documented."""
    future = asyncio.get_running_loop().create_future()
    order: list[int] = []
    for number in range(3):
        future.add_done_callback(lambda _, number=number: order.append(number))
    future.set_result(None)
    await asyncio.sleep(0.001)
    assert order == [0, 1, 2], order


async def cancelled_before_it_began() -> None:
    """A task that is cancelled at once never runs."""
    order = []

    async def child() -> None:
        order.append("ran")

    task = asyncio.create_task(child())
    task.cancel()
    await asyncio.wait([task])
    assert not order, order


async def deadline_order() -> None:
    """Deadlines come in their order, and those of one moment in the order in which they were set."""
    loop = asyncio.get_running_loop()
    order: list[float] = []
    over = loop.create_future()
    for delay in (0.3, 0.1, 0.2):
        loop.call_later(delay, order.append, delay)
    loop.call_later(0.4, over.set_result, None)
    await over
    assert order == [0.1, 0.2, 0.3], order


async def gather_raises_the_first() -> None:
    """Of two that fail in one iteration, gather raises the error of the one that was passed first."""

    async def fail(name: str) -> None:
        await asyncio.sleep(0)
        raise RuntimeError(name)

    raised = ""
    try:
        await asyncio.gather(fail("first"), fail("second"))
    except RuntimeError as error:
        raised = str(error)
    assert raised == "first", raised


def lock_order() -> Parts:
    """A lock is handed on in the order of the requests."""
    lock, order, waits = asyncio.Lock(), [], []

    async def use(name: int) -> None:
        waits.append(name)
        async with lock:
            order.append(name)
            await asyncio.sleep(0.001)

    def check() -> None:
        assert order == waits, (order, waits)

    return [use(number) for number in range(4)], check


def event_wake_ups() -> Parts:
    """Waiters of an event wake in the order in which they began to wait."""
    event, order, waits = asyncio.Event(), [], []

    async def wait(name: int) -> None:
        waits.append(name)
        await event.wait()
        order.append(name)

    async def release() -> None:
        await asyncio.sleep(0.001)
        event.set()

    def check() -> None:
        assert order == waits, (order, waits)

    return [*(wait(number) for number in range(3)), release()], check


def queue_order() -> Parts:
    """A queue is first in, first out, for those who wait for items too."""
    queue: asyncio.Queue[int] = asyncio.Queue()
    order, waits = [], []

    async def consume(name: int) -> None:
        waits.append(name)
        item = await queue.get()
        order.append((item, name))

    async def produce() -> None:
        await asyncio.sleep(0.001)
        for number in range(3):
            queue.put_nowait(number)

    def check() -> None:
        assert [name for _, name in sorted(order)] == waits, (order, waits)

    return [*(consume(number) for number in range(3)), produce()], check


def sleep_order() -> Parts:
    """Of two tasks that begin to sleep at once the shorter sleep ends first."""
    order: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append(seconds)

    def check() -> None:
        assert order == [0.1, 0.2], order

    return [sleep(0.2), sleep(0.1)], check


def first_turns() -> Parts:
    """Tasks run their first turns in the order of their creation."""
    order: list[int] = []

    async def child(name: int) -> None:
        order.append(name)
        await asyncio.sleep(0)

    def check() -> None:
        assert order == [0, 1, 2], order

    return [child(number) for number in range(3)], check


def sleeps_take_turns() -> Parts:
    """Two tasks that only yield take turns."""
    order: list[str] = []

    async def work(name: str) -> None:
        for _ in range(3):
            order.append(name)
            await asyncio.sleep(0)

    def check() -> None:
        assert order == ["a", "b"] * 3, order

    return [work("a"), work("b")], check


# -- #9615 on agent-framework -----------------------------------------------------------------------


def issue_9615(*, in_save: Wait | None = None, in_call: Wait | None = None) -> Program:
    """Return the program of order_flow.py; the framework is imported only here."""
    from order_flow import issue_9615

    return issue_9615(in_save=in_save, in_call=in_call)


async def yield_once(_name: str) -> None:
    """Yield."""
    await asyncio.sleep(0)


async def a_millisecond(_name: str) -> None:
    """Take 1 ms."""
    await asyncio.sleep(0.001)


async def five_milliseconds(_name: str) -> None:
    """Take 5 ms."""
    await asyncio.sleep(0.005)


RACES = {name: Case(program=program, parts=taken_apart(program)) for name, (program, _) in programs.PROGRAMS.items()}
GRIDS = {f"grid_{tasks}x{awaits}": Case(parts=grid(tasks, awaits)) for tasks, awaits in [(2, 3), (5, 4), (10, 10)]}
CLEAN = {
    **{f"locks_{tasks}": Case(parts=locks(tasks)) for tasks in (2, 3, 4)},
    **{f"increments_{tasks}": Case(parts=increments(tasks)) for tasks in (2, 3, 4)},
}
PROMISES = {
    **{
        program.__name__: Case(program=program)
        for program in (
            *(call_soon_order, done_callback_order, cancelled_before_it_began, deadline_order),
            gather_raises_the_first,
        )
    },
    **{
        parts.__name__: Case(parts=parts)
        for parts in (lock_order, event_wake_ups, queue_order, sleep_order, first_turns, sleeps_take_turns)
    },
}
ISSUE_9615 = {
    "9615_memory": Case(remote=lambda _wait: issue_9615()),
    "9615_yield": Case(remote=lambda _wait: issue_9615(in_save=yield_once)),
    "9615_latency": Case(remote=lambda _wait: issue_9615(in_save=a_millisecond, in_call=five_milliseconds)),
    "9615_remote": Case(remote=lambda wait: issue_9615(in_save=wait, in_call=wait)),
}
THEIRS = {
    **{
        parts.__name__: Case(parts=parts)
        for parts in (
            *(theirs.lost_update, theirs.check_then_set, theirs.torn_publication, theirs.starvation),
            *(theirs.events_in_order, theirs.overdraft),
        )
    },
    **{
        parts.__name__: Case(remote_parts=parts)
        for parts in (
            *(theirs.philosophers, theirs.stampede, theirs.leaking_pool),
            *(theirs.applied_twice, theirs.counter_over_the_wire),
        )
    },
}
CASES = {**THEIRS, **RACES, **GRIDS, **CLEAN, **PROMISES, **ISSUE_9615}
