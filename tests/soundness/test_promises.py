"""Programs that are right because stock asyncio keeps an order: no schedule below ``relaxed`` breaks them."""

import asyncio
import contextlib
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness
from harness import LoopSettings, Rung, execute
from harness.model.registry import load_plugin, plugin_names
from harness.runtime.execution import DEFAULT_TURN_LIMIT, open_session
from harness.search.portfolio import search
from harness.search.recording import Planned
from harness.search.sampling import Sampling
from harness.search.sweep import Sweep
from harness.search.target import Target

SCHEDULERS = {
    name: load_plugin("harness.schedulers", name=name, kind="scheduler") for name in plugin_names("harness.schedulers")
}
BELOW = [Rung.EXACT, Rung.LATENCY]
SEEDS = 60
TURN_LIMIT = DEFAULT_TURN_LIMIT


async def call_soon_order():
    """Callbacks run in the order of call_soon, whatever tasks and ops do meanwhile."""
    loop = asyncio.get_running_loop()
    order = []

    async def disturb(name):
        await asyncio.sleep(0)
        loop.call_soon(order.append, ("late", name))
        await harness.point(name)
        await asyncio.sleep(0.001)

    tasks = [asyncio.create_task(disturb(name)) for name in "ab"]
    for number in range(5):
        loop.call_soon(order.append, number)
    await asyncio.gather(*tasks)
    assert [event for event in order if isinstance(event, int)] == list(range(5)), order


async def done_callback_order():
    """The callbacks of a future are called in the order in which they were added, a task that waits among them."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    order = []

    async def wait():
        await future
        order.append("task")

    future.add_done_callback(lambda _: order.append("first"))
    waiter = asyncio.create_task(wait())
    other = asyncio.create_task(harness.point("other"))
    while not getattr(waiter, "_fut_waiter", None):
        await asyncio.sleep(0)
    future.add_done_callback(lambda _: order.append("last"))
    await harness.point("source")
    future.set_result(None)
    await asyncio.gather(waiter, other)
    await asyncio.sleep(0)
    assert order == ["first", "task", "last"], order


async def first_turns():
    """Tasks run their first turns in the order of their creation."""
    order = []

    async def child(name):
        order.append(name)
        await harness.point(name)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(child(str(number)))
    assert order == list("01234"), order


async def event_wake_ups():
    """Waiters of an event wake in the order in which they began to wait."""
    event, order = asyncio.Event(), []

    async def wait(name):
        await event.wait()
        order.append(name)

    async def release():
        await harness.point("release")
        event.set()

    await asyncio.gather(*(wait(number) for number in range(5)), release())
    assert order == list(range(5)), order


async def lock_order():
    """A lock is handed on in the order of the requests."""
    lock, order = asyncio.Lock(), []

    async def use(name):
        async with lock:
            order.append(name)
            await harness.point(f"work{name}")

    await asyncio.gather(*map(use, range(4)))
    assert order == list(range(4)), order


async def semaphore_order():
    """And so are the places of a semaphore."""
    semaphore, order = asyncio.Semaphore(2), []

    async def use(name):
        async with semaphore:
            order.append(name)
            await harness.point(f"work{name}")

    await asyncio.gather(*map(use, range(5)))
    assert order == list(range(5)), order


async def condition_order():
    """notify wakes the one that has waited longest."""
    condition, order = asyncio.Condition(), []

    async def wait(name):
        async with condition:
            await condition.wait()
            order.append(name)

    async def notify():
        for number in range(3):
            await harness.point(f"news{number}")
            async with condition:
                condition.notify()

    await asyncio.gather(*map(wait, range(3)), notify())
    assert order == list(range(3)), order


async def gather_raises_the_first():
    """Of two that fail in one iteration, gather raises the error of the one that was passed first."""

    async def fail(name):
        await asyncio.sleep(0)
        raise RuntimeError(name)

    with pytest.raises(RuntimeError, match="first"):
        await asyncio.gather(fail("first"), fail("second"), harness.point("other"))


async def queue_order():
    """A queue is first in, first out, for items and for those who wait for them."""
    queue, order = asyncio.Queue(), []

    async def consume(name):
        order.append((name, await queue.get()))

    async def produce():
        for number in range(4):
            await harness.point(f"make{number}")
            queue.put_nowait(number)

    await asyncio.gather(*map(consume, range(4)), produce())
    assert order == [(number, number) for number in range(4)], order


async def deadline_order():
    """Deadlines come in their order, and those of one moment in the order in which they were set."""
    loop = asyncio.get_running_loop()
    order = []
    for delay in (0.3, 0.1, 0.2):
        loop.call_later(delay, order.append, delay)
    for name in "abcde":
        loop.call_later(0.15, order.append, name)
    limits = []

    async def limited(limit):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await asyncio.Event().wait()
        limits.append(limit)

    await asyncio.gather(limited(0.5), limited(0.4), *(harness.point(str(number)) for number in range(3)))
    assert order == [0.1, *"abcde", 0.2, 0.3], order
    assert limits == [0.4, 0.5], limits


async def no_deadline_is_left_behind():
    """What is due at once is called within the next two iterations, however busy the loop is."""
    loop = asyncio.get_running_loop()
    order = []
    loop.call_later(0, order.append, "due")
    loop.call_at(loop.time() - 1, order.append, "overdue")
    other = asyncio.create_task(harness.point("other"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["overdue", "due"], order
    await other


async def sleeps_take_turns():
    """Two tasks that only yield take turns."""
    order = []

    async def work(name):
        for _ in range(5):
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"), harness.point("other"))
    assert order == ["a", "b"] * 5, order


async def one_worker_keeps_order():
    """An executor with one worker runs functions in order, and their results come in order."""
    loop = asyncio.get_running_loop()
    ran, came = [], []

    async def work(number):
        await loop.run_in_executor(pool, ran.append, number)
        came.append(number)

    with ThreadPoolExecutor(1) as pool:
        await asyncio.gather(*map(work, range(4)), harness.point("other"))
    assert ran == came == [0, 1, 2, 3], (ran, came)


async def nothing_outside_is_instant():
    """What comes from outside takes one iteration to be noticed and one more to wake a task."""
    order = []

    async def outside():
        await harness.point("outside")
        order.append("outside")

    async def yields():
        await asyncio.sleep(0)
        order.append("yielded")

    await asyncio.gather(outside(), yields())
    assert order == ["yielded", "outside"], order


async def cancelled_before_it_began():
    """A task that is cancelled at once never runs."""
    order = []

    async def child():
        order.append("ran")

    task = asyncio.create_task(child())
    task.cancel()
    await asyncio.wait([task, asyncio.create_task(harness.point("other"))])
    assert order == []


async def clock_never_stands_still():
    """No two reads of the loop's clock are equal, and it never goes back."""
    loop = asyncio.get_running_loop()
    reads = [loop.time()]
    for _ in range(5):
        reads.extend((loop.time(), loop.time()))
        await harness.point("pause")
        await asyncio.sleep(0.001)
    assert reads == sorted(set(reads))


ALWAYS = [call_soon_order, done_callback_order]
ORDERS = [
    *(*ALWAYS, first_turns, event_wake_ups, lock_order, semaphore_order, condition_order, gather_raises_the_first),
    *(queue_order, deadline_order, no_deadline_is_left_behind, sleeps_take_turns, one_worker_keeps_order),
    *(nothing_outside_is_instant, cancelled_before_it_began, clock_never_stands_still),
]


def phases(rung):
    """Every single deviation, then every random scheduler that may be used."""
    found = [Sweep(rung=rung, share=0.3)]
    for name, plugin in SCHEDULERS.items():
        if plugin.rung is None or plugin.rung <= rung:
            found.append(Sampling(name, plugin, seed=1, rung=rung, share=0.5))
    return found


def look(program, rung):
    budget = SEEDS * len(SCHEDULERS)
    target = Target(program.__name__, program, rung=rung, turn_limit=TURN_LIMIT)
    return search(target, phases=phases(rung), budget=budget)


@pytest.mark.parametrize("rung", BELOW, ids=lambda rung: rung.label)
@pytest.mark.parametrize("program", ORDERS, ids=lambda program: program.__name__)
def test_orders_that_asyncio_keeps_hold_below_relaxed(program, rung):
    """No schedule breaks them."""
    result = look(program, rung)
    assert result.verdict == "none-found", result.counterexample


@pytest.mark.parametrize("program", ALWAYS, ids=lambda program: program.__name__)
def test_callback_order_holds_in_relaxed_schedules(program):
    """call_soon order and done-callback order are documented."""
    assert look(program, Rung.RELAXED).verdict == "none-found"


@pytest.mark.parametrize("program", [first_turns, sleeps_take_turns], ids=lambda program: program.__name__)
def test_what_only_relaxed_schedules_break_says_so(program):
    """The finding carries the label."""
    found = look(program, Rung.RELAXED).counterexample
    assert found is not None
    assert found.rung is Rung.RELAXED
    assert found.execution.rung is Rung.RELAXED


def polls(make_flag):
    """Return a program that polls for what ``make_flag`` completes."""

    async def program():
        waits = asyncio.create_task(make_flag())
        while not waits.done():
            await asyncio.sleep(0)

    program.__name__ = make_flag.__name__
    return program


async def a_point():
    await harness.point("news")


async def two_points_and_a_sleep():
    await harness.point("one")
    await asyncio.sleep(0.1)
    await harness.point("two")


async def a_long_sleep():
    await asyncio.sleep(3600)


async def a_job():
    await asyncio.to_thread(int)


async def a_lock_after_a_job():
    lock = asyncio.Lock()
    async with lock:
        await asyncio.to_thread(int)
    async with lock:
        await asyncio.sleep(0)


async def yields():
    for _ in range(3):
        await asyncio.sleep(0)


async def a_clock():
    loop = asyncio.get_running_loop()
    began = loop.time()
    while loop.time() < began + 60:
        await asyncio.sleep(0)


def by_jobs():
    """Poll by jobs for a timer."""

    async def poll_by_jobs():
        flag = []
        asyncio.get_running_loop().call_later(0.5, flag.append, 1)
        while not flag:
            await asyncio.to_thread(int)

    return poll_by_jobs


def by_sleeps():
    """Poll by sleeps for a point."""

    async def poll_by_sleeps():
        waits = asyncio.create_task(a_point())
        while not waits.done():
            await asyncio.sleep(0.01)

    return poll_by_sleeps


POLLING = [
    *map(polls, [a_point, two_points_and_a_sleep, a_long_sleep, a_job, a_lock_after_a_job, yields, a_clock]),
    by_jobs(),
    by_sleeps(),
]


class Always:
    """The scheduler that always takes the same option: the most unfair one."""

    def __init__(self, value):
        self.value = value

    def choose(self, point):
        """Return the option, or the last one."""
        return min(self.value, len(point.enabled) - 1)


@pytest.mark.parametrize("rung", list(Rung), ids=lambda rung: rung.label)
@pytest.mark.parametrize("program", POLLING, ids=lambda program: program.__name__)
def test_a_polling_program_ends_under_every_scheduler(program, rung):
    """Nobody is starved into a turn limit."""
    with open_session() as session:
        for name, plugin in SCHEDULERS.items():
            if plugin.rung is not None and plugin.rung > rung:
                continue
            settings = LoopSettings(rung=rung, discipline=plugin.discipline, turn_limit=TURN_LIMIT)
            for seed in range(3):
                scheduler = plugin.make(random.Random(seed))
                execution = execute(program, scheduler, settings=settings, session=session)
                assert execution.ending.kind == "returned", (name, seed, execution.ending)


@pytest.mark.parametrize("rung", list(Rung), ids=lambda rung: rung.label)
@pytest.mark.parametrize("program", POLLING, ids=lambda program: program.__name__)
def test_a_polling_program_ends_under_the_most_unfair_scheduler(program, rung):
    """One that always takes the same option, or always the last."""
    with open_session() as session:
        for discipline in ("ranks", "indices"):
            for value in (0, 1, 2, 99):
                settings = LoopSettings(rung=rung, discipline=discipline, turn_limit=100_000)
                execution = execute(program, Always(value), settings=settings, session=session)
                assert execution.ending.kind == "returned", (discipline, value, execution.ending)


def cancels(members, group):
    """Return a program that returns the order in which a set of tasks is cancelled."""

    async def program():
        order = []

        async def member(number):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                order.append(number)
                raise

        async def fail():
            await asyncio.sleep(0)
            raise RuntimeError

        if group:
            with contextlib.suppress(BaseExceptionGroup):
                async with asyncio.TaskGroup() as tasks:
                    for number in range(members):
                        tasks.create_task(member(number))
                    tasks.create_task(fail())
        else:
            tasks = {asyncio.create_task(member(number)) for number in range(members)}
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return tuple(order)

    return program


@pytest.mark.parametrize("group", [True, False], ids=["group", "set"])
@pytest.mark.parametrize(("members", "orders"), [(2, 2), (3, 6), (4, 9), (8, 10)])
def test_cancellation_order_is_one_order_and_a_choice(members, orders, group):
    """The same in every execution of a plan; every order of two and of three is met."""
    with open_session() as session:
        found = [
            {execute(cancels(members, group), Planned({0: value}), session=session).ending.value for _ in range(3)}
            for value in range(10)
        ]
    assert {len(each) for each in found} == {1}
    distinct = {next(iter(each)) for each in found}
    assert len(distinct) >= orders
    assert {tuple(sorted(order)) for order in distinct} == {tuple(range(members))}


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_of_a_large_set_meets_in_both_orders(seed):
    """Whatever the pair."""
    members = random.Random(seed).choice((8, 12, 20))
    pairs = set()
    with open_session() as session:
        for value in range(10):
            order = execute(cancels(members, True), Planned({0: value}), session=session).ending.value
            pairs.update((one, other) for index, one in enumerate(order) for other in order[index + 1 :])
    assert len(pairs) == members * (members - 1)
