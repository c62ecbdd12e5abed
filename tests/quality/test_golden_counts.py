"""Plain enumeration counts exactly the interleavings that there are."""

import asyncio
import math

import pytest

from harness.runtime.execution import execute, open_session
from harness.search.recording import Planned
from tests.unit.schedulers.interleavings import SETTINGS, tasks_of


def enumerate_all(program):
    """Yield what each schedule returns: depth first over the choices of lanes, nothing left out."""
    with open_session() as session:
        plan = {}
        while True:
            scheduler = Planned(plan)
            execution = execute(program, scheduler, settings=SETTINGS, session=session)
            assert scheduler.fits
            yield execution.ending.value
            lanes = [point for point in scheduler.seen if point.kind == "lane"]
            while lanes and plan.get(lanes[-1].index, 0) == lanes[-1].options - 1:
                lanes.pop()
            if not lanes:
                return
            last = lanes[-1].index
            plan = {index: value for index, value in plan.items() if index < last} | {last: plan.get(last, 0) + 1}


def counted(tasks, turns):
    """Return how many interleavings ``tasks`` tasks of ``turns`` turns have."""
    return math.factorial(tasks * turns) // math.factorial(turns) ** tasks


def writes(log, index):
    """One write."""

    async def body():
        log.append(index)
        return
        yield

    return body()


def read_modify_writes(count):
    """Return a body of so many atomic increments."""

    async def body(log, index):
        for number in range(count):
            log.append(index)
            if number < count - 1:
                yield

    return body


async def increment(log, index):
    """Read in one turn and write in the next; the log is the variable, and its length the value."""
    value = len(log)
    yield
    del log[value + 1 :]
    log[value:] = [index]


async def read(log, index):
    """Look at the last write."""
    log.append(("sees", [entry for entry in log if isinstance(entry, int)][-1:]))
    return
    yield


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_one_write_each(tasks):
    """n! schedules, and every permutation as an outcome."""
    found = list(enumerate_all(tasks_of(*[writes] * tasks)))
    assert len(found) == len(set(map(tuple, found))) == math.factorial(tasks)


@pytest.mark.parametrize(
    ("tasks", "turns", "count"),
    [(2, 3, 20), (3, 2, 90), pytest.param(3, 3, 1_680, marks=pytest.mark.slow)],
)
def test_atomic_read_modify_writes(tasks, turns, count):
    """(nk)!/(k!)^n, all with other outcomes."""
    found = list(enumerate_all(tasks_of(*[read_modify_writes(turns)] * tasks)))
    assert len(found) == len(set(map(tuple, found))) == count == counted(tasks, turns)


@pytest.mark.parametrize(("tasks", "count"), [(2, 6), (3, 90), pytest.param(4, 2_520, marks=pytest.mark.slow)])
def test_increments_in_two_turns(tasks, count):
    """(2n)!/2^n, and every number of lost updates."""
    found = list(enumerate_all(tasks_of(*[increment] * tasks)))
    assert len(found) == count == counted(tasks, 2)
    assert {len(log) for log in found} == set(range(1, tasks + 1))


@pytest.mark.parametrize("readers", [1, 2, 3, 4])
def test_one_writer_and_readers(readers):
    """(n+1)! schedules."""
    found = list(enumerate_all(tasks_of(writes, *[read] * readers)))
    assert len(found) == math.factorial(readers + 1)


def test_a_done_callback_is_a_barrier():
    """Under ``gather`` a task that ends puts a plain callback in the queue, which no turn passes: fewer orders."""

    def program(join):
        async def run():
            log = []

            async def work(index):
                for number in range(2):
                    log.append(index)
                    if number == 0:
                        await asyncio.sleep(0)

            await join(*map(work, range(3)))
            return log

        return run

    assert len(set(map(tuple, enumerate_all(program(asyncio.gather))))) < counted(3, 2)
