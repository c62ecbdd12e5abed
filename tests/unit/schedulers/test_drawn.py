"""A scheduler that answers by the number of options alone makes the schedules that it makes when it sees them."""

import asyncio
import random
import sys

import pytest

from harness import LoopSettings, Rung, execute
from harness.runtime.execution import open_session
from harness.runtime.points import fault, point
from harness.schedulers.uniform import Uniform


class Shown:
    """A uniform scheduler that is shown its options."""

    def __init__(self, source):
        self._inner = Uniform(source)

    def choose(self, point, /):
        """Return any index with equal probability."""
        assert all(str(option) for option in point.enabled)
        return self._inner.choose(point)


async def program():
    """Take turns, wait for points, timers and plain callbacks, and inject a fault."""
    loop = asyncio.get_running_loop()
    log = []

    async def worker(name):
        for step in range(3):
            log.append((name, step, fault("breaks")))
            await asyncio.sleep(0)
            loop.call_soon(log.append, name)
            await point("save")
            await asyncio.sleep(step / 1000)
        return name

    log += await asyncio.gather(*map(worker, "abcd"))
    return log


@pytest.mark.parametrize("rung", list(Rung))
def test_drawing_and_choosing_make_the_same_schedules(rung):
    """The same decisions, rung and result for the same seed, traced and untraced."""
    settings = LoopSettings(rung=rung, discipline="indices", turn_limit=2_000)
    traced = LoopSettings(rung=rung, discipline="indices", turn_limit=2_000, tracing=True)
    with open_session() as session:
        for seed in range(20):
            runs = [
                execute(program, Uniform(random.Random(seed)), settings=settings, session=session),
                execute(program, Shown(random.Random(seed)), settings=settings, session=session),
                execute(program, Uniform(random.Random(seed)), settings=traced, session=session),
            ]
            found = [(run.ending.value, run.rung, run.choices, run.turns, run.schedule.plan()) for run in runs]
            labels = [[decision.label for decision in run.schedule.decisions] for run in runs]
            assert found == found[:1] * 3
            assert labels == labels[:1] * 3


def calls_of(count, *, rung, tracing, births):
    """Return how many Python functions an execution of about ``count`` turns calls, per turn."""

    async def child():
        pass

    async def worker():
        for _ in range(count // 2):
            await (asyncio.create_task(child()) if births else asyncio.sleep(0))

    async def program():
        await asyncio.gather(worker(), worker())

    calls = 0

    def count_call(_frame, event, _arg):
        nonlocal calls
        calls += event == "call"

    settings = LoopSettings(rung=rung, discipline="indices", tracing=tracing)
    with open_session() as session:
        for _ in range(2):  # the first one makes what later ones copy
            scheduler = Uniform(random.Random(0))
            before = sys.getprofile()
            calls = 0
            sys.setprofile(count_call)
            try:
                turns = execute(program, scheduler, settings=settings, session=session).turns
            finally:
                sys.setprofile(before)
    return calls / turns


@pytest.mark.slow
@pytest.mark.parametrize("tracing", [False, True])
@pytest.mark.parametrize("births", [False, True])
@pytest.mark.parametrize("rung", [Rung.LATENCY, Rung.RELAXED])
def test_a_turn_does_not_become_dearer_with_the_number_of_turns(rung, births, tracing):
    """As many calls of Python functions per turn in a long execution as in a short one."""
    short, long = (calls_of(count, rung=rung, tracing=tracing, births=births) for count in (100, 1_000))
    assert long < 1.1 * short


@pytest.mark.parametrize("seed", range(5))
def test_what_somebody_puts_into_the_ready_queue_by_hand_runs(seed):
    """A turn that empties the queue and fills it again loses nothing and breaks nothing."""
    log = []

    async def worker(name):
        for _ in range(3):
            await asyncio.sleep(0)
            log.append(name)

    async def edits():
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(worker(name)) for name in "abc"]
        await asyncio.sleep(0)
        waiting = list(loop._ready)
        loop._ready.clear()
        loop.call_soon(log.append, "callback")
        loop._ready.extend(waiting)
        await asyncio.wait(tasks)

    settings = LoopSettings(rung=Rung.RELAXED, discipline="indices", turn_limit=500)
    with open_session() as session:
        for _ in range(2):
            log.clear()
            ending = execute(edits, Uniform(random.Random(seed)), settings=settings, session=session).ending
            assert (ending.kind, sorted(log)) == ("returned", sorted(["callback", *"aaabbbccc"]))
