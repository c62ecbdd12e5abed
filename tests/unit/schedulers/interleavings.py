"""Programs of tasks made of turns whose only choice is which task goes next, and what became of them.

Nothing joins the tasks but a future that the last one completes: a done-callback would be a barrier that no turn
passes, and a parent that wakes up would be one more lane.
"""

import asyncio
from collections import Counter

from harness import LoopSettings, Rung, execute
from harness.runtime.execution import open_session

SETTINGS = LoopSettings(rung=Rung.RELAXED, discipline="indices", turn_limit=10_000)


def tasks_of(*bodies):
    """Return a program that runs each async generator function as a task; a ``yield`` ends a turn."""

    async def program():
        log = []
        done = asyncio.get_running_loop().create_future()
        left = len(bodies)

        async def work(index, body):
            nonlocal left
            async for _ in body(log, index):
                await asyncio.sleep(0)
            left -= 1
            if not left:
                done.set_result(None)

        tasks = [asyncio.create_task(work(index, body)) for index, body in enumerate(bodies)]
        await done
        del tasks
        return log

    return program


def turns(count):
    """Return a body of ``count`` turns that logs its index in each."""

    async def body(log, index):
        for number in range(count):
            log.append(index)
            if number < count - 1:
                yield

    return body


def grid(tasks, count):
    """Return a program of ``tasks`` tasks of ``count`` turns each."""
    return tasks_of(*[turns(count)] * tasks)


def sample(program, make, count):
    """Execute ``count`` times, each with a scheduler from ``make()``, and count the orders."""
    with open_session() as session:
        return Counter(
            tuple(execute(program, make(), settings=SETTINGS, session=session).ending.value) for _ in range(count)
        )


def chi_squared(counts, expected):
    """Return the statistic; expected: outcome to expected count."""
    assert set(counts) <= set(expected)
    return sum((counts.get(key, 0) - value) ** 2 / value for key, value in expected.items())
