"""The programs with which the other tools show what they find, written anew as plain asyncio.

Owns one program per mechanism; must not know how a tool is driven. Where theirs draws a duration, or lets a network
take one, ours waits for something of unknown length, which is each tool's own way to say that.

Sources: simloom 0.5.0, README and tests/bug_zoo.py; detangle 0.1.0, examples/; seedloop 0.4.1, examples/quickstart.py;
simloop 0.2.2, README.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Wait = Callable[[str], Awaitable[Any]]
Parts = tuple[list[Coroutine[Any, Any, Any]], Callable[[], None]]


def nothing() -> None:
    """Check nothing: a task of the program fails by itself."""


async def turns(number: int) -> None:
    """Yield so many times."""
    for _ in range(number):
        await asyncio.sleep(0)


# -- simloom: only the order of ready tasks decides -------------------------------------------------


def lost_update() -> Parts:
    """Three tasks add one three times; a read and its write are a turn apart."""
    total = 0

    async def add() -> None:
        nonlocal total
        for _ in range(3):
            seen = total
            await turns(1)
            total = seen + 1

    def check() -> None:
        assert total == 9, total

    return [add() for _ in range(3)], check


def check_then_set() -> Parts:
    """Four tasks come one after the other to a flag that each tests a turn before it sets it."""
    taken, inside, most = False, 0, 0

    async def enter(late: int) -> None:
        nonlocal taken, inside, most
        await turns(late + 1)
        if taken:
            return
        await turns(1)
        taken = True
        inside += 1
        most = max(most, inside)
        await turns(1)
        inside -= 1
        taken = False

    def check() -> None:
        assert most <= 1, most

    return [enter(number) for number in range(4)], check


def torn_publication() -> Parts:
    """A value is there four turns before its flag; a reader among ten idle tasks must not see that state twice."""
    there = flagged = False
    torn: list[bool] = []

    async def idle() -> None:
        await turns(8)

    async def publish() -> None:
        nonlocal there, flagged
        await turns(2)
        there = True
        await turns(4)
        flagged = True

    async def read() -> None:
        await turns(2)
        torn.append(there and not flagged)
        await turns(1)
        torn.append(there and not flagged)

    def check() -> None:
        assert not all(torn), torn

    return [publish(), read(), *(idle() for _ in range(10))], check


def starvation() -> Parts:
    """A task must get one turn while another takes fourteen."""
    renewed = 0

    async def burst() -> None:
        await turns(14)
        assert renewed, "the lease was never renewed"

    async def renew() -> None:
        nonlocal renewed
        for _ in range(20):
            await turns(1)
            renewed += 1

    return [burst(), renew()], nothing


# -- detangle: time decides too ---------------------------------------------------------------------


def events_in_order() -> Parts:
    """Two handlers write for 5 ms each and then publish; the second event needs the first."""
    created: set[int] = set()

    async def create(order: int) -> None:
        await asyncio.sleep(0.005)
        created.add(order)

    async def ship(order: int) -> None:
        await asyncio.sleep(0.005)
        assert order in created, f"{order} was shipped before it was created"

    return [create(42), ship(42)], nothing


def overdraft() -> Parts:
    """Two transfers are each checked 10 ms before they are made."""
    balance = 100

    async def transfer(amount: int) -> None:
        nonlocal balance
        if balance >= amount:
            await asyncio.sleep(0.01)
            balance -= amount

    def check() -> None:
        assert balance >= 0, balance

    return [transfer(60), transfer(60)], check


def philosophers(wait: Wait) -> Parts:
    """Five tasks take two of five locks each, the left one first."""
    forks = [asyncio.Lock() for _ in range(5)]

    async def dine(seat: int) -> None:
        for meal in range(2):
            async with forks[seat]:
                await wait(f"think {seat} {meal}")
                async with forks[(seat + 1) % 5]:
                    await asyncio.sleep(0.01)

    return [dine(seat) for seat in range(5)], nothing


def stampede(wait: Wait) -> Parts:
    """Of five requests that come at any time, at most one may ask the backend at a time; none remembers who asks."""
    cached, asking = False, 0

    async def request(number: int) -> None:
        nonlocal cached, asking
        await wait(f"arrive {number}")
        if cached:
            return
        asking += 1
        assert asking == 1, f"{asking} requests for one key"
        await wait(f"fetch {number}")
        asking -= 1
        cached = True

    return [request(number) for number in range(5)], nothing


def leaking_pool(wait: Wait) -> Parts:
    """Queries under a timeout of 5 ms give their place back after the query, which a timeout skips."""
    places, used = asyncio.Semaphore(2), 0

    async def query(number: int) -> None:
        nonlocal used
        await places.acquire()
        used += 1
        await wait(f"query {number}")
        used -= 1
        places.release()

    async def client(number: int) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(query(number), timeout=0.005)

    def check() -> None:
        assert used == 0, f"{used} places leaked"

    return [client(number) for number in range(4)], check


# -- seedloop and simloop: a network decides --------------------------------------------------------


def applied_twice(wait: Wait) -> Parts:
    """A request that is not acknowledged within 15 ms is sent again; the server does not know that it had it."""
    applied = 0

    async def serve(number: int) -> None:
        nonlocal applied
        await wait(f"request {number}")
        applied += 1
        await wait(f"answer {number}")

    async def client() -> None:
        sent: list[asyncio.Task[None]] = []
        for number in range(3):
            sent.append(asyncio.create_task(serve(number)))
            done, _ = await asyncio.wait(sent, timeout=0.015, return_when=asyncio.FIRST_COMPLETED)
            if done:
                break
        await asyncio.wait(sent)

    def check() -> None:
        assert applied == 1, f"applied {applied} times"

    return [client()], check


def counter_over_the_wire(wait: Wait) -> Parts:
    """Two clients each read a counter from a server and write it back; the second begins 10 ms later."""
    count = 0

    async def add(number: int) -> None:
        nonlocal count
        await asyncio.sleep(0.01 * number)
        await wait(f"get {number}")
        seen = count
        await wait(f"set {number}")
        count = seen + 1

    def check() -> None:
        assert count == 2, count

    return [add(0), add(1)], check
