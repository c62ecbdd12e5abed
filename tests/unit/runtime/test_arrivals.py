"""Arrivals in detail: clocks, deadlines, executors and sets."""

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness
from harness import LoopSettings, Rung, execute
from harness.runtime.identity import SET_ORDERS
from harness.search.recording import Planned


def returned(program, plan=None, **settings):
    """Execute ``program`` under a plan and return what it returned."""
    settings.setdefault("turn_limit", 10_000)
    ending = execute(program, Planned(plan or {}), settings=LoopSettings(**settings)).ending
    assert ending.kind == "returned", ending
    return ending.value


def test_deadlines_of_one_delay_come_in_the_order_in_which_they_were_set():
    """They differ, as on a clock that moves."""

    async def program():
        order = []
        for number in range(6):
            asyncio.get_running_loop().call_later(0.1, order.append, number)
        await asyncio.sleep(0.2)
        return order

    assert returned(program) == list(range(6))


def test_equal_deadlines_come_out_of_the_heap_as_in_stock_asyncio():
    """Which is not the order in which they were set (CPython, Modules/_heapqmodule.c)."""

    async def program():
        loop = asyncio.get_running_loop()
        order, when = [], loop.time() + 0.1
        for number in range(5):
            loop.call_at(when, order.append, number)
        await asyncio.sleep(0.2)
        return order

    assert returned(program) == asyncio.run(program())


def test_cancelled_timers_do_not_pile_up():
    """As in stock asyncio, most of them leave the heap before their deadline."""

    async def program():
        loop = asyncio.get_running_loop()
        loop.call_later(0.5, lambda: None)
        for _ in range(1000):
            loop.call_later(1000, lambda: None).cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        return len(loop._scheduled)

    assert returned(program) < 200


def test_ops_come_before_timers_within_an_iteration():
    """Stock asyncio queues what is from outside before timers that are due."""

    async def program():
        order = []
        loop = asyncio.get_running_loop()

        async def wait():
            await harness.point("op")
            order.append("op")

        task = asyncio.create_task(wait())
        for _ in range(2):
            await asyncio.sleep(0)
        loop.call_later(0.1, order.append, "timer")
        for _ in range(3):
            await asyncio.sleep(0)
        await task
        await asyncio.sleep(1)
        return order

    # both early: the op was parked first, and its rank is choice 1; the timer's is choice 2
    assert returned(program, {1: 2, 2: 2}) == ["op", "timer"]


def test_a_job_that_is_cancelled_in_the_queue_never_runs():
    """The only worker was busy with the one before it."""

    async def program():
        loop = asyncio.get_running_loop()
        order = []
        with ThreadPoolExecutor(1) as pool:
            jobs = [loop.run_in_executor(pool, order.append, number) for number in range(3)]
            jobs[1].cancel()
            await asyncio.wait(jobs)
        return order

    assert returned(program) == [0, 2]


def test_a_job_that_a_worker_has_begun_runs_though_it_is_cancelled():
    """Nobody stops a thread."""

    async def program():
        order = []
        job = asyncio.get_running_loop().run_in_executor(None, order.append, "ran")
        job.cancel()
        await asyncio.wait([job])
        await asyncio.sleep(0.1)
        return order

    assert returned(program) == ["ran"]


@pytest.mark.parametrize("held", range(1, 4))
def test_an_executor_with_two_workers_runs_the_third_job_after_one_of_the_first(held):
    """Whichever is held."""

    async def program():
        loop = asyncio.get_running_loop()
        order = []
        with ThreadPoolExecutor(2) as pool:
            await asyncio.gather(*(loop.run_in_executor(pool, order.append, number) for number in range(3)))
        return order

    order = returned(program, {held: 1}, rung=Rung.EXACT)
    assert sorted(order) == [0, 1, 2]
    assert order[0] != 2


def test_three_of_eight_neighbours_meet_in_every_order():
    """The invariant of SET_ORDERS."""
    for chosen in itertools.combinations(range(8), 3):
        met = {tuple(sorted(chosen, key=order.hash_of)) for order in SET_ORDERS}
        assert met == set(itertools.permutations(chosen))


def test_hashes_of_a_set_order_are_distinct():
    """Or members would depend on probing."""
    for order in SET_ORDERS:
        assert len({order.hash_of(number) for number in range(2000)}) == 2000


def test_a_held_op_comes_though_a_heartbeat_never_stops():
    """A hold waits for the others, not for ever."""

    async def program():
        async def beat():
            while True:
                await asyncio.sleep(0.1)

        heart = asyncio.create_task(beat())
        await harness.point("news")
        heart.cancel()

    returned(program, {1: 1})
    returned(program, {0: 0, 2: 1})
