"""What an execution leaves: nothing, and it says nothing, however the program ends."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.model.rung import Rung
from harness.runtime.execution import execute, open_session
from harness.runtime.loop import ControlledLoop, LoopSettings
from harness.runtime.silence import Noise, silenced


async def returns():
    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))


async def fails_with_leftovers():
    tasks = [asyncio.create_task(asyncio.sleep(delay)) for delay in (0, 1, 2)]
    await tasks[0]
    raise ValueError("with two tasks left")


async def deadlocks():
    async def waits():
        await asyncio.get_running_loop().create_future()

    await asyncio.gather(waits(), waits())


async def polls_for_ever():
    while True:
        await asyncio.sleep(0)


async def ignores_cancellation():
    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    raise ValueError(f"with {task.get_name()} left")


async def ignores_being_closed():
    loop = asyncio.get_running_loop()

    async def stubborn():
        while True:
            try:
                await loop.create_future()
            except BaseException:
                continue

    asyncio.create_task(stubborn())  # noqa: RUF006
    await asyncio.sleep(0)


async def cleans_up_slowly():
    async def tidy():
        try:
            await asyncio.sleep(1)
        finally:
            await asyncio.get_running_loop().create_future()

    asyncio.create_task(tidy())  # noqa: RUF006
    await asyncio.sleep(0)


async def cleans_up_with_a_task():
    async def stubborn():
        try:
            while True:
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    continue
        finally:
            asyncio.create_task(asyncio.sleep(0))  # noqa: RUF006

    asyncio.create_task(stubborn())  # noqa: RUF006
    await asyncio.sleep(0)


async def leaves_a_generator():
    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)

    async for _ in numbers():
        break


async def leaves_a_generator_that_fails():
    async def numbers():
        try:
            yield 1
        finally:
            raise ValueError("while it is closed")

    generator = numbers()
    await anext(generator)
    await asyncio.get_running_loop().create_future()


async def leaves_a_generator_in_the_middle():
    loop = asyncio.get_running_loop()

    async def numbers():
        while True:
            try:
                await loop.create_future()
                yield 1
            except asyncio.CancelledError:
                continue

    async def reads():
        async for _ in numbers():
            pass

    asyncio.create_task(reads())  # noqa: RUF006
    await asyncio.sleep(0)


async def cancels_before_the_first_turn():
    async def wraps(inner):
        await inner

    task = asyncio.create_task(wraps(asyncio.sleep(1)))
    task.cancel()
    await asyncio.wait([task])


def breaks():
    raise ValueError("in a callback")


async def drops_a_failed_task():
    async def fails():
        raise ValueError("nobody looks")

    asyncio.create_task(fails())  # noqa: RUF006
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(breaks)
    await asyncio.sleep(0)


async def drops_a_failed_future():
    asyncio.get_running_loop().create_future().set_exception(ValueError("nobody looks"))


async def forgets_to_await():
    asyncio.sleep(1)


PROGRAMS = {
    returns: "returned",
    fails_with_leftovers: "raised",
    deadlocks: "deadlock",
    polls_for_ever: "turn-limit",
    ignores_cancellation: "raised",
    ignores_being_closed: "returned",
    cleans_up_slowly: "returned",
    cleans_up_with_a_task: "returned",
    leaves_a_generator: "returned",
    leaves_a_generator_that_fails: "deadlock",
    leaves_a_generator_in_the_middle: "returned",
    cancels_before_the_first_turn: "returned",
    drops_a_failed_task: "returned",
    drops_a_failed_future: "returned",
    forgets_to_await: "returned",
}
SETTINGS = LoopSettings(turn_limit=500)


class Census:
    """What is alive in the process: tasks and loops, file descriptors, threads."""

    def __init__(self):
        for _ in range(3):  # what other tests left may take more than one collection
            gc.collect()
        alive = gc.get_objects()
        self.found = (
            sum(isinstance(one, asyncio.Future) for one in alive),
            sum(isinstance(one, ControlledLoop) for one in alive),
            len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
            len(threading.enumerate()),
        )


@pytest.fixture
def nothing_is_said(capfd, caplog, recwarn, monkeypatch):
    """Fail when anything reaches standard error, the log, the warnings or the unraisable hook."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    yield
    gc.collect()
    assert (capfd.readouterr().err, caplog.messages, [str(one.message) for one in recwarn], said) == ("", [], [], [])


@pytest.mark.usefixtures("nothing_is_said")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_execution_leaves_nothing_and_says_nothing(program):
    """No task, loop, file or thread is left after a session, whatever the program did."""
    before = Census().found
    with open_session() as session:
        kinds = {execute(program, settings=SETTINGS, session=session).ending.kind for _ in range(3)}
    assert (kinds, Census().found) == ({PROGRAMS[program]}, before)


@pytest.mark.usefixtures("nothing_is_said")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_execution_without_a_session_leaves_nothing_either(program):
    """The same for a single ``execute`` call."""
    before = Census().found
    kind = execute(program, settings=SETTINGS).ending.kind
    assert (kind, Census().found) == (PROGRAMS[program], before)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_said")
def test_stalled_turn_leaves_nothing():
    """A turn that blocks is interrupted; what it held is closed."""

    async def stalls():
        task = asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(0)
        time.sleep(10)  # it is the subject
        await task

    before = Census().found
    with open_session() as session:
        kind = execute(stalls, session=session).ending.kind
    assert (kind, Census().found) == ("stalled", before)


@pytest.mark.usefixtures("nothing_is_said")
def test_threads_and_files_of_real_io_end():
    """An executor's threads and a selector's files end with their loop."""

    async def uses_a_thread():
        await asyncio.to_thread(int)

    before = Census().found
    known = set(threading.enumerate())
    with open_session() as session:
        for _ in range(3):
            execute(uses_a_thread, settings=LoopSettings(allow_real_io=True), session=session)
    for thread in set(threading.enumerate()) - known:
        thread.join(5)
    assert Census().found == before


def test_unhandled_errors_are_data():
    """What asyncio would have logged is in the execution, with the task's path."""
    execution = execute(drops_a_failed_task)
    assert tuple(re.sub(r" at \S+:\d+", "", line) for line in execution.unhandled) == (
        "Task exception was never retrieved in fails: ValueError: nobody looks",
        "Exception in callback breaks(): ValueError: in a callback",
    )


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (ignores_cancellation, ("stubborn",)),
        (cleans_up_slowly, ("tidy",)),
        (leaves_a_generator_in_the_middle, ("reads", "generator numbers")),
        (leaves_a_generator, ()),
    ],
)
def test_what_will_not_end_is_reported_by_name(program, names):
    """A task that outlives its cancellation has a name in the execution; a generator that was closed has none."""
    assert execute(program, settings=SETTINGS).abandoned == names


def test_program_hears_of_its_errors_through_its_own_handler():
    """A handler that the program sets is called as on the stock loop, and not for what the clean-up does."""
    heard = []

    async def listens():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["message"]))
        asyncio.get_running_loop().call_soon(breaks)
        asyncio.create_task(cleans_up_slowly())  # noqa: RUF006
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    execution = execute(listens, settings=SETTINGS)
    assert ([message.partition(" at ")[0] for message in heard], execution.unhandled) == (
        ["Exception in callback breaks()"],
        (),
    )


def test_finally_blocks_of_an_execution_run_before_the_next_one():
    """What an execution abandoned is closed with it, so that none of its effects reaches the next one."""
    log = []

    async def stubborn():
        try:
            while True:
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    continue
        finally:
            log.append("closed")

    async def leaves():
        log.append("begins")
        asyncio.create_task(stubborn())  # noqa: RUF006
        await asyncio.sleep(0)

    with open_session() as session:
        for _ in range(2):
            execute(leaves, settings=SETTINGS, session=session)
    assert log == ["begins", "closed", "begins", "closed"]


def test_session_counts_what_it_kept_from_the_user():
    """A report can say what was kept from the user."""
    with open_session() as session:
        for _ in range(3):
            execute(forgets_to_await, session=session)
    assert (session.noise.count, session.noise.sentences) == (3, {"coroutine sleep was never awaited": 3})


def test_noise_is_bounded():
    """A search of a million executions keeps so many sentences and no more."""
    noise = Noise()
    for number in range(1000):
        noise.note(f"sentence {number}")
    assert (noise.count, len(noise.sentences)) == (1000, Noise.LIMIT)


def test_unraisable_errors_of_others_go_where_they_went():
    """An error in somebody's ``__del__`` is not ours to hide."""

    class Loud:
        def __del__(self):
            raise ValueError("in __del__")

    heard = []
    before, sys.unraisablehook = sys.unraisablehook, lambda event: heard.append(str(event.exc_value))
    try:
        with silenced(Noise()):
            Loud()
    finally:
        sys.unraisablehook = before
    assert heard == ["in __del__"]


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_said")
def test_memory_is_flat_after_ten_thousand_executions():
    """The resident memory of a process does not grow with its executions.

    In a process of its own: in this one, what earlier tests left to the allocator moves the figure by 2 MB.
    """
    code = "from tests.unit.runtime.test_leaks import measure; print(*measure(10_000))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[3],
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    sizes = [int(size) for size in done.stdout.split()]
    assert len(sizes) == 10
    assert sizes[-1] - sizes[1] < 1_000_000


def measure(executions):
    """Return the resident bytes after each thousand of ``executions``; nothing else may be left."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")

    def resident_bytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * page_bytes

    settings = LoopSettings(turn_limit=500, rung=Rung.LATENCY)
    before = Census().found
    sizes = []
    with open_session() as session:
        for number in range(executions):
            execute((returns, fails_with_leftovers, deadlocks)[number % 3], settings=settings, session=session)
            if number % 1_000 == 999:
                sizes.append(resident_bytes())
    assert Census().found == before
    return sizes
