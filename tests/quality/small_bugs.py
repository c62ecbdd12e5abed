"""Small concurrency bugs of many shapes; in default order each of them passes.

Owns the programs; must not know how they are searched.
"""

from __future__ import annotations

import asyncio
import contextlib


async def turns(number: int = 1) -> None:
    """Let others run."""
    for _ in range(number):
        await asyncio.sleep(0)


async def lost_update() -> None:
    """Interest is computed from a balance that a deposit changes meanwhile."""
    balance = 100
    lock = asyncio.Lock()

    async def add_interest() -> None:
        nonlocal balance
        await turns()
        old = balance
        await turns()
        balance = old + 10

    async def deposit() -> None:
        nonlocal balance
        await turns(5)
        async with lock:
            old = balance
            await turns()
            balance = old + 50

    await asyncio.gather(add_interest(), deposit())
    assert balance == 160, balance


async def opposite_locks() -> None:
    """Two tasks take two locks in opposite orders, one well after the other."""
    one, other = asyncio.Lock(), asyncio.Lock()

    async def move() -> None:
        async with one:
            await turns()
            async with other:
                await turns()

    async def audit() -> None:
        await turns(6)
        async with other:
            await turns()
            async with one:
                await turns()

    await asyncio.gather(move(), audit())


async def check_then_get() -> None:
    """A worker sees an item in a queue, logs that, and takes it; another takes it in between."""
    queue: asyncio.Queue[int] = asyncio.Queue()
    taken: list[int] = []

    async def work(delay: int) -> None:
        await turns(delay)
        if not queue.empty():
            await turns()
            taken.append(queue.get_nowait())

    async def produce() -> None:
        queue.put_nowait(1)
        await turns(3)

    await asyncio.gather(produce(), work(0), work(3))
    assert taken == [1]


async def missed_notification() -> None:
    """A consumer looks, finds nothing, and waits; the notification comes before the wait."""
    condition = asyncio.Condition()
    ready = False

    async def consume() -> None:
        await turns()
        if not ready:
            await turns()
            async with condition:
                await condition.wait()

    async def produce() -> None:
        nonlocal ready
        await turns(5)
        ready = True
        async with condition:
            condition.notify_all()

    await asyncio.gather(consume(), produce())


async def cancelled_in_cleanup() -> None:
    """A second cancellation falls into a clean-up that awaits: the connection is not given back."""
    pool = ["connection"]

    async def use() -> None:
        connection = pool.pop()
        try:
            await asyncio.Event().wait()
        finally:
            await turns(2)
            pool.append(connection)

    task = asyncio.create_task(use())
    await turns(2)
    task.cancel()
    await turns(4)
    if not task.done():
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert pool == ["connection"]


async def double_release() -> None:
    """A user and a reaper close one session: both see it open."""
    is_open, releases = True, 0

    async def close() -> None:
        nonlocal is_open, releases
        if is_open:
            await turns()
            is_open = False
            releases += 1

    async def user() -> None:
        await turns(2)
        await close()

    async def reap() -> None:
        await turns(6)
        await close()

    await asyncio.gather(user(), reap())
    assert releases == 1, releases


async def event_set_before_wait() -> None:
    """A waiter clears the event before it waits; who set it before is not heard."""
    event = asyncio.Event()

    async def wait() -> None:
        await turns()
        event.clear()
        await event.wait()

    async def signal() -> None:
        await turns(4)
        event.set()

    await asyncio.gather(wait(), signal())


async def leaked_semaphore() -> None:
    """A task that is cancelled between its acquire and its ``try`` keeps the semaphore."""
    semaphore, go_on = asyncio.Semaphore(1), asyncio.Event()

    async def use() -> None:
        await semaphore.acquire()
        await turns()
        try:
            await go_on.wait()
        finally:
            semaphore.release()

    async def cancel(task: asyncio.Task[None]) -> None:
        await turns(4)
        task.cancel()

    task = asyncio.create_task(use())
    await cancel(task)
    await asyncio.wait([task])
    async with semaphore:
        pass


async def reader_between_two_writes() -> None:
    """A reader that comes late sees an index without its entry only if it runs inside the writer, after the sweeper."""
    index: dict[str, int] = {}
    entries: dict[int, str] = {}

    async def read() -> None:
        await turns()
        at = index.get("key")
        await turns()
        assert at is None or at in entries, "the index points nowhere"

    async def sweep() -> None:
        await turns(4)
        for at in [at for at in entries if at not in index.values()]:
            del entries[at]

    async def write() -> None:
        await turns(8)
        entries[1] = "value"
        await turns()
        index["key"] = 1

    await asyncio.gather(read(), sweep(), write())
    assert entries.keys() == {1}, "the new entry was swept away"


async def slow_answer_overwrites() -> None:
    """Two requests take 1 and 5 ms; an answer that comes late overwrites the newer one."""
    shown = ""

    async def ask(query: str, seconds: float) -> None:
        nonlocal shown
        await asyncio.sleep(seconds)
        shown = query

    first = asyncio.create_task(ask("h", 0.001))
    await turns(3)
    await asyncio.gather(first, ask("hello", 0.005))
    assert shown == "hello", shown


async def order_of_three() -> None:
    """Stages register as they start and are torn down in that order: the last one must not come before the first."""
    order: list[int] = []

    async def stage(number: int) -> None:
        await turns()
        order.append(number)

    async def close() -> None:
        await turns(4)
        assert len(order) < 3 or order[0] != 2, order

    await asyncio.gather(*map(stage, range(3)), close())


async def overcommitted() -> None:
    """Workers wait until one may begin, and count themselves a turn later: all may have waited enough by then."""
    active, most, limit = 0, 0, 2
    condition = asyncio.Condition()

    async def work(delay: int) -> None:
        nonlocal active, most
        await turns(delay)
        async with condition:
            while active >= limit:
                await condition.wait()
        await turns()
        active += 1
        most = max(most, active)
        await turns()
        async with condition:
            active -= 1
            condition.notify()

    await asyncio.gather(*map(work, (0, 0, 8, 8)))
    assert most <= limit, most


async def stale_cache() -> None:
    """A value is changed while it is loaded; the old one is kept for ever."""
    database, cache = {"key": 1}, {}

    async def load() -> None:
        if "key" not in cache:
            await turns()
            value = database["key"]
            await turns()
            cache["key"] = value

    async def change() -> None:
        await turns(7)
        database["key"] = 2
        cache.pop("key", None)

    await asyncio.gather(load(), change())
    assert cache.get("key", 2) == 2, cache


PROGRAMS = {
    program.__name__: program
    for program in (
        *(lost_update, opposite_locks, check_then_get, missed_notification, cancelled_in_cleanup, double_release),
        *(event_set_before_wait, leaked_semaphore, reader_between_two_writes, slow_answer_overwrites, order_of_three),
        *(overcommitted, stale_cache),
    )
}
