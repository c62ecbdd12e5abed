"""The benchmark programs of SCTBench and of the PCT, POS and SURW papers, as asyncio ports.

Owns the programs and how they are spaced; must not know a scheduler. Sources: Thomson, Donaldson and Betts,
"Concurrency Testing Using Controlled Schedulers", TOPC 2016 (SCTBench); Qadeer and Wu, PLDI 2004 (bluetooth);
Flanagan and Qadeer, PLDI 2003 (stringbuffer).

Each access of a shared variable is a turn of its own: ``await turn()`` comes before it. Tasks created back to back
exist at once, which would make these programs too easy, so the parent waits for GAP turns before each birth, as a
thread takes its time to start. All of them pass in default order and need the rung ``relaxed``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

GAP = 10

Program = Callable[[], Coroutine[Any, Any, None]]


def turn() -> Awaitable[None]:
    """Let others run before the next access of a shared variable."""
    return asyncio.sleep(0)


async def run_tasks(
    *coroutines: Coroutine[Any, Any, Any], then: Coroutine[Any, Any, Any] | None = None, gap: int = GAP
) -> None:
    """Start each coroutine as a task after ``gap`` turns, run ``then`` in the parent, and join them in order."""
    tasks = []
    for coroutine in coroutines:
        for _ in range(gap):
            await asyncio.sleep(0)
        tasks.append(asyncio.create_task(coroutine))
    failed: BaseException | None = None
    if then is not None:
        await then
    for task in tasks:
        try:
            await task
        except AssertionError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def reorder(setters: int, *, gap: int = GAP) -> Program:
    """Setters write a = 1 and then b = -1; a checker must never see one without the other."""

    async def program() -> None:
        a = b = 0

        async def set_both() -> None:
            nonlocal a, b
            await turn()
            a = 1
            await turn()
            b = -1

        async def check() -> None:
            await turn()
            seen_a = a
            await turn()
            seen_b = b
            assert (seen_a, seen_b) in {(0, 0), (1, -1)}, f"a = {seen_a}, b = {seen_b}"

        await run_tasks(*(set_both() for _ in range(setters)), check(), gap=gap)

    return program


def twostage(writers: int, *, gap: int = GAP) -> Program:
    """Two locks, each taken alone: between the two stages of a writer the data do not fit."""

    async def program() -> None:
        data1 = data2 = 0
        lock1, lock2 = asyncio.Lock(), asyncio.Lock()

        async def write() -> None:
            nonlocal data1, data2
            async with lock1:
                await turn()
                data1 = 1
            await turn()
            async with lock2:
                await turn()
                data2 = data1 + 1

        async def read() -> None:
            async with lock1:
                await turn()
                if data1 == 0:
                    return
                first = data1
            await turn()
            async with lock2:
                await turn()
                second = data2
            assert second == first + 1, f"data1 = {first}, data2 = {second}"

        await run_tasks(*(write() for _ in range(writers)), read(), gap=gap)

    return program


def bluetooth_driver(*, gap: int = GAP) -> Program:
    """A driver stops between another's check that it runs and its use: the use comes after the stop."""

    async def program() -> None:
        stopping = stopped = False
        stop_event = False
        pending = 1

        async def enter() -> bool:
            nonlocal pending
            await turn()
            if stopping:
                return False
            await turn()
            pending += 1
            return True

        async def leave() -> None:
            nonlocal pending, stop_event
            await turn()
            pending -= 1
            if pending == 0:
                await turn()
                stop_event = True

        async def add() -> None:
            if await enter():
                await turn()
                assert not stopped, "the driver is used after it was stopped"
            await leave()

        async def stop() -> None:
            nonlocal stopping, stopped
            await turn()
            stopping = True
            await leave()
            await turn()
            if stop_event:
                await turn()
                stopped = True

        await run_tasks(stop(), then=add(), gap=gap)

    return program


def stringbuffer(*, gap: int = GAP) -> Program:
    """``append`` takes the other's length and then its characters, each under the lock: it may shrink in between.

    The appender is a task of its own; the original's main function appends, which would fail in default order.
    """

    class Buffer:
        def __init__(self, text: str) -> None:
            self.text = list(text)
            self.lock = asyncio.Lock()

        async def length(self) -> int:
            async with self.lock:
                await turn()
                return len(self.text)

        async def characters(self, start: int, end: int) -> list[str]:
            async with self.lock:
                await turn()
                assert end <= len(self.text), f"characters up to {end} of a buffer of {len(self.text)}"
                return self.text[start:end]

        async def erase(self, start: int, end: int) -> None:
            async with self.lock:
                await turn()
                del self.text[start:end]

        async def append(self, other: Buffer) -> None:
            async with self.lock:
                length = await other.length()
                await turn()
                self.text += await other.characters(0, length)

    async def program() -> None:
        buffer = Buffer("abc")

        async def erase_all() -> None:
            await turn()
            await buffer.erase(0, 3)
            await turn()
            async with buffer.lock:
                await turn()
                buffer.text += "abc"

        async def append_it() -> None:
            await turn()
            await Buffer("").append(buffer)

        await run_tasks(erase_all(), append_it(), gap=gap)

    return program


def lazy01(*, gap: int = GAP) -> Program:
    """Two tasks raise a counter in turn; a third fails when it sees both done.

    The check is created first, so that the default order passes; the original creates it last.
    """

    async def program() -> None:
        data = 0
        lock = asyncio.Lock()

        async def add(amount: int) -> None:
            nonlocal data
            async with lock:
                await turn()
                data += amount

        async def check() -> None:
            async with lock:
                await turn()
                assert data < 3, "both were added before the check"

        await run_tasks(check(), add(1), add(2), gap=gap)

    return program


def account(*, gap: int = GAP) -> Program:
    """A deposit and a withdrawal under the lock, and a check whose formula is wrong once both are done."""

    async def program() -> None:
        opening, more, less = 1, 2, 4
        balance = opening
        lock = asyncio.Lock()
        deposited = withdrawn = False

        async def deposit() -> None:
            nonlocal balance, deposited
            async with lock:
                await turn()
                balance += more
                await turn()
                deposited = True

        async def withdraw() -> None:
            nonlocal balance, withdrawn
            async with lock:
                await turn()
                balance -= less
                await turn()
                withdrawn = True

        async def check() -> None:
            async with lock:
                await turn()
                both = deposited and withdrawn
                await turn()
                assert not both or balance == opening - more - less, f"{balance} is left"

        await run_tasks(check(), deposit(), withdraw(), gap=gap)

    return program


def token_ring(*, gap: int = GAP) -> Program:
    """Three tasks pass a value on, and a fourth expects it to be the same everywhere once all have run."""

    async def program() -> None:
        values = [0, 0, 0]
        ran = [False, False, False]
        lock = asyncio.Lock()

        async def pass_on(index: int) -> None:
            async with lock:
                await turn()
                values[index] = values[index - 1] if index else (values[2] + 1) % 4
                await turn()
                ran[index] = True

        async def check() -> None:
            async with lock:
                await turn()
                assert not all(ran) or len(set(values)) == 1, f"the ring holds {values}"

        await run_tasks(*(pass_on(index) for index in range(3)), check(), gap=gap)

    return program


def deadlock01(*, gap: int = GAP) -> Program:
    """Two tasks take two locks in opposite orders."""

    async def program() -> None:
        counter = 1
        one, other = asyncio.Lock(), asyncio.Lock()

        async def work(first: asyncio.Lock, second: asyncio.Lock, amount: int) -> None:
            nonlocal counter
            await turn()
            async with first:
                await turn()
                async with second:
                    await turn()
                    counter += amount

        await run_tasks(work(one, other, 1), work(other, one, -1), gap=gap)

    return program


def wronglock(others: int = 3, *, gap: int = GAP) -> Program:
    """One task guards the data with one lock, the others with another."""

    async def program() -> None:
        data = 0
        right, wrong = asyncio.Lock(), asyncio.Lock()

        async def watch() -> None:
            nonlocal data
            async with right:
                await turn()
                before = data
                await turn()
                data += 1
                await turn()
                assert data == before + 1, f"data went from {before} to {data}"

        async def add() -> None:
            nonlocal data
            async with wrong:
                await turn()
                data += 1

        await run_tasks(watch(), *(add() for _ in range(others)), gap=gap)

    return program


# Published means for the thread originals: SURW, PCT-3, POS, random walk; None is "never".
PROGRAMS: dict[str, tuple[Program, tuple[int | None, ...]]] = {
    "reorder_3": (reorder(3), (7, 185, 86, None)),
    "reorder_5": (reorder(5), (10, 647, 2169, None)),
    "reorder_10": (reorder(10), (17, 3225, None, None)),
    "twostage": (twostage(1), (8, 13, 15, 464)),
    "twostage_20": (twostage(20), (6, 159, 156, None)),
    "bluetooth_driver": (bluetooth_driver(), (70, 112, 36, 215)),
    "stringbuffer": (stringbuffer(), (8, 281, 23, 2243)),
    "lazy01": (lazy01(), (2, 5, 5, 21)),
    "account": (account(), (6, 4, 4, 18)),
    "token_ring": (token_ring(), (8, 8, 9, 13)),
    "deadlock01": (deadlock01(), (2, 13, 4, 3)),
    "wronglock": (wronglock(), (7, 51, 10, 36)),
}
