"""Every execution begins alike: a loop from a mould is as fresh as one of asyncio, and randomness starts anew."""

import asyncio
import os
import random
import secrets
import uuid

import pytest

from harness import ControlledLoop, LoopSettings, Rung, execute
from harness.runtime.execution import mould_of_loops, open_session
from harness.schedulers.uniform import Uniform

SETTINGS = [
    LoopSettings(),
    LoopSettings(rung=Rung.RELAXED, discipline="indices", tracing=True),
    LoopSettings(rung=Rung.RELAXED, discipline="ranks", turn_limit=7),
]


def fields_of(loop):
    """Return what a loop holds, containers by type and content, without what is made on demand."""
    fields = {name: value for name, value in vars(loop).items() if not name.startswith(("_asyncgens", "_transports"))}
    return {name: (type(value), value) for name, value in fields.items() if name not in ("draw", "labels")}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_loop_from_a_mould_holds_what_a_loop_of_asyncio_holds(settings, seed):
    """The same fields with the same values, whatever scheduler and settings."""

    def scheduler():
        return None if seed is None else same

    same = Uniform(random.Random(seed))
    mould = mould_of_loops()
    state = same._random.__self__.getstate()
    whole = ControlledLoop(scheduler(), settings=settings)
    same._random.__self__.setstate(state)
    copied = ControlledLoop(scheduler(), settings=settings, mould=mould)
    assert fields_of(copied) == fields_of(whole)
    whole.close()
    copied.close()


def test_loops_from_one_mould_share_no_container():
    """What one loop collects, another one does not see."""
    mould = mould_of_loops()
    one, other = ControlledLoop(mould=mould), ControlledLoop(mould=mould)
    for name in {*vars(one), *(name for name, value in vars(type(one)).items() if hasattr(value, "_make"))}:
        value = getattr(one, name)
        if isinstance(value, (list, dict, set)) or type(value).__module__ in ("collections", "_weakrefset", "weakref"):
            assert value is not getattr(other, name), name
            assert not value, name
    one.close()
    other.close()


def test_what_a_program_does_to_its_loop_ends_with_it():
    """The next execution of the session meets a loop that nobody has touched."""

    async def program():
        loop = asyncio.get_running_loop()
        seen = (
            loop.get_debug(),
            loop.get_exception_handler(),
            loop.get_task_factory().__name__,
            loop.slow_callback_duration,
            hasattr(loop, "mark"),
            loop.turn,
            loop.time() < 1,
        )
        loop.set_exception_handler(print)
        loop.set_task_factory(lambda loop, coro, **kwargs: asyncio.Task(coro, loop=loop, **kwargs))
        loop.slow_callback_duration = 5
        loop.mark = 1
        loop.call_later(1, print)
        await asyncio.sleep(100)
        loop.set_debug(True)
        return seen

    with open_session() as session:
        seen = [execute(program, session=session).ending.value for _ in range(4)]
    assert seen == [(False, None, "make_task", 0.1, False, 1, True)] * 4


def test_a_lock_of_another_execution_is_refused():
    """As under ``asyncio.run``: each execution has a loop of its own."""
    lock = asyncio.Lock()

    async def holder():
        async with lock:
            await asyncio.sleep(0)

    async def program():
        await asyncio.gather(holder(), holder())

    with open_session() as session:
        endings = [execute(program, session=session).ending for _ in range(3)]
    assert [ending.kind for ending in endings] == ["returned", "raised", "raised"]
    assert "different event loop" in str(endings[1].error)


def draw_nothing():
    """Leave the generators alone."""


def draw_one():
    """Draw one number."""
    random.random()


def draw_a_whole_state():
    """Draw as many words as the generator keeps."""
    for _ in range(624):
        random.getrandbits(32)


def draw_half_a_pair():
    """Leave the second number of a pair that is drawn together."""
    random.gauss(0, 1)


def seed_anew():
    """Seed the generator."""
    random.seed(7)


@pytest.mark.parametrize("before", [draw_nothing, draw_one, draw_a_whole_state, draw_half_a_pair, seed_anew])
def test_randomness_starts_anew_with_each_execution(before):
    """Whatever the execution before drew."""

    async def program():
        numbers = random.gauss(0, 1), random.random(), os.urandom(4), secrets.token_hex(4), uuid.uuid4()
        before()
        return numbers

    random.seed(3)
    with open_session() as session:
        numbers = [execute(program, session=session).ending.value for _ in range(3)]
    assert numbers[1:] == numbers[:1] * 2
    after = random.random()
    random.seed(3)
    assert after == random.random()


@pytest.mark.parametrize("args", [(), (1,)])
def test_error_of_a_callback_is_told_as_stock_asyncio_tells_it(args):
    """The same message, error and handle, with arguments and without."""

    def breaks(*_):
        raise ValueError("in a callback")

    async def program():
        told = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        loop.call_soon(breaks, *args)
        await asyncio.sleep(0)
        context = told[0]
        return sorted(context), context["message"], repr(context["exception"]), repr(context["handle"])

    assert execute(program).ending.value == asyncio.run(program())
