"""The controlled loop in default order, virtual time, identity and endings."""

import asyncio
import contextlib
import contextvars
import gc
import math
import subprocess
import sys
import time
import unittest
from pathlib import Path

import pytest

import harness
from harness import HarnessEventLoopPolicy, LoopSettings, Rung, UncontrolledError, execute
from harness.runtime.execution import open_session

DATA = Path(__file__).parents[2] / "data"


def ending(program, **settings):
    """Execute ``program`` once in default order and return its ending."""
    settings.setdefault("turn_limit", 10_000)
    return execute(program, settings=LoopSettings(**settings)).ending


def returned(program, **settings):
    """Execute ``program`` once and return what it returned."""
    end = ending(program, **settings)
    assert end.kind == "returned", end
    return end.value


def test_virtual_time_jumps_to_the_next_timer():
    """A thousand seconds take no time."""

    async def program():
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(1000)
        return loop.time() - began

    real = time.monotonic()
    assert 1000 <= returned(program) < 1000.01
    assert time.monotonic() - real < 1


def test_sleeps_wake_in_deadline_order_and_a_sleeper_is_never_early():
    """Default order is the order of deadlines."""

    async def program():
        order = []

        async def sleeper(delay):
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(delay)
            order.append((delay, asyncio.get_running_loop().time() - began >= delay))

        await asyncio.gather(*map(sleeper, [0.3, 0.1, 0.2, 0.1]))
        return order

    assert returned(program) == [(0.1, True), (0.1, True), (0.2, True), (0.3, True)]


def test_points_are_delivered_oldest_first_and_before_timers():
    """Option 0: the oldest parked op, and a timer only when nothing else is parked."""

    async def program():
        order = []

        async def waits(name):
            await harness.point(name)
            order.append(name)

        async def sleeps():
            await asyncio.sleep(0.001)
            order.append("timer")

        await asyncio.gather(sleeps(), waits("a"), waits("b"))
        return order

    assert returned(program) == ["a", "b", "timer"]


def test_executor_jobs_run_inline_without_a_running_loop_in_an_empty_context():
    """A job sees what it would see on a thread of its own."""
    variable = contextvars.ContextVar("variable", default="empty")

    def job():
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return variable.get(), "no loop"
        return variable.get(), "loop"

    async def program():
        variable.set("set")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, job), await asyncio.to_thread(job)

    assert returned(program) == (("empty", "no loop"), ("set", "no loop"))


def test_an_error_of_a_job_reaches_its_future():
    """Exceptions pass, and StopIteration becomes a RuntimeError as futures need it."""

    def fails():
        raise KeyError("job")

    async def program():
        try:
            await asyncio.to_thread(fails)
        except KeyError as error:
            return error.args

    assert returned(program) == ("job",)


def test_a_deadlock_is_an_ending_with_who_waits_for_what():
    """The wait graph names tasks by path, and what each one waits for."""

    async def holder(lock, event):
        async with lock:
            await event.wait()

    async def waiter(lock):
        async with lock:
            pass

    async def program():
        lock, event = asyncio.Lock(), asyncio.Event()
        await asyncio.gather(holder(lock, event), waiter(lock))

    end = ending(program)
    assert end.kind == "deadlock"
    lines = end.detail.splitlines()
    assert lines[0] == "deadlock: nothing can run any more"
    assert [line.split(" at ")[0].strip() for line in lines[1:]] == [
        "program waits for gather of holder, waiter",
        "holder waits for asyncio Event.wait",
        "waiter waits for asyncio Lock.acquire",
    ]


def test_a_livelock_ends_at_the_turn_limit():
    """A loop that yields for ever is stopped, with its wait graph."""

    async def program():
        while True:
            await asyncio.sleep(0)

    end = ending(program, turn_limit=500)
    assert end.kind == "turn-limit"
    assert "no end after 500 turns" in end.detail
    assert "program waits for its next turn" in end.detail


def test_a_polling_task_does_not_starve_what_it_polls_for():
    """After a while of polling, parked ops and timers arrive all the same."""

    async def program():
        flag = []

        async def setter():
            await harness.point("answer")
            flag.append(1)
            await asyncio.sleep(0.01)
            flag.append(2)

        task = asyncio.create_task(setter())
        while len(flag) < 2:
            await asyncio.sleep(0)
        await task
        return flag

    assert returned(program) == [1, 2]


@pytest.mark.slow
def test_a_turn_that_blocks_is_interrupted_with_its_stack():
    """A synchronous hang ends within two seconds of real time and names its line."""

    async def program():
        time.sleep(60)

    began = time.monotonic()
    with open_session():
        end = ending(program)
    assert time.monotonic() - began < 2
    assert end.kind == "stalled"
    assert "time.sleep(60)" in end.detail


@pytest.mark.slow
def test_a_job_that_blocks_is_interrupted_with_its_stack():
    """A job that blocks for ever is reported, not waited for in silence."""

    def job():
        time.sleep(60)

    async def program():
        await asyncio.to_thread(job)

    with open_session():
        end = ending(program)
    assert end.kind == "stalled"
    assert "time.sleep(60)" in end.detail


def test_what_is_left_over_is_cancelled_and_its_cleanup_runs():
    """As asyncio.run does at the end."""
    log = []

    async def background():
        try:
            await asyncio.sleep(100)
        finally:
            log.append("cleaned up")

    async def program():
        asyncio.create_task(background())  # noqa: RUF006
        await asyncio.sleep(0)

    assert ending(program).kind == "returned"
    assert log == ["cleaned up"]


def test_a_task_that_ignores_cancellation_is_abandoned_by_name():
    """The execution ends all the same."""

    async def stubborn():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def program():
        asyncio.create_task(stubborn())  # noqa: RUF006
        await asyncio.sleep(0)

    execution = execute(program)
    assert execution.ending.kind == "returned"
    assert execution.abandoned == ("stubborn",)


def test_task_paths_are_made_of_coroutine_names_and_ordinals():
    """The second sibling of one name is #2."""

    async def leaf():
        await asyncio.sleep(0)

    async def branch():
        await asyncio.gather(leaf(), leaf())

    async def program():
        await asyncio.gather(branch(), branch())

    trace = execute(program, settings=LoopSettings(tracing=True, turn_limit=1000)).trace
    harness_lanes = {turn.lane for turn in trace if turn.lane != "loop"}
    assert harness_lanes == {
        "program",
        "branch",
        "branch#2",
        "branch/leaf",
        "branch/leaf#2",
        "branch#2/leaf",
        "branch#2/leaf#2",
    }


def test_default_task_names_count_per_loop():
    """Names do not depend on what ran before in the process."""

    async def program():
        return asyncio.current_task().get_name(), asyncio.create_task(asyncio.sleep(0)).get_name()

    assert returned(program) == ("Task-1", "Task-2")
    assert returned(program) == ("Task-1", "Task-2")


def test_sets_of_tasks_iterate_in_creation_order():
    """Tasks hash by number, and so do futures."""

    async def program():
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(8)]
        futures = [asyncio.get_running_loop().create_future() for _ in range(8)]
        in_sets = list(set(tasks)), list(set(futures))
        return in_sets == (tasks, futures)

    assert returned(program)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("create_connection", lambda loop: loop.create_connection(asyncio.Protocol, "localhost", 1)),
        ("getaddrinfo", lambda loop: loop.getaddrinfo("localhost", 1)),
        ("subprocess_exec", lambda loop: loop.subprocess_exec(asyncio.SubprocessProtocol, "true")),
        ("add_signal_handler", lambda loop: loop.add_signal_handler(2, print)),
        ("add_reader", lambda loop: loop.add_reader(0, print)),
    ],
)
def test_the_outside_is_refused_with_the_call_site(name, call):
    """UncontrolledError says what was called, and where."""

    async def program():
        try:
            call(asyncio.get_running_loop())
        except UncontrolledError as error:
            return str(error)

    message = returned(program)
    assert message.startswith(f"loop.{name}() at {__file__}:")
    assert "allow_real_io" in message


class TestWaysIn(unittest.IsolatedAsyncioTestCase):
    """The policy under unittest."""

    @classmethod
    def setUpClass(cls):
        """Install the policy."""
        cls._before = asyncio.get_event_loop_policy()
        asyncio.set_event_loop_policy(HarnessEventLoopPolicy())

    @classmethod
    def tearDownClass(cls):
        """Restore the policy."""
        asyncio.set_event_loop_policy(cls._before)

    async def test_runs_on_the_controlled_loop(self):
        """Hours pass at once."""
        assert isinstance(asyncio.get_running_loop(), harness.ControlledLoop)
        await asyncio.sleep(3600)


def test_the_policy_serves_asyncio_run():
    """asyncio.run works under the policy, and a deadlock raises with its wait graph."""

    async def stuck():
        await asyncio.Event().wait()

    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(HarnessEventLoopPolicy())
    try:
        assert asyncio.run(asyncio.sleep(3600, "slept")) == "slept"
        with pytest.raises(harness.DeadlockError, match=r"stuck waits for asyncio Event\.wait"):
            asyncio.run(stuck())
    finally:
        asyncio.set_event_loop_policy(before)


def test_the_loop_factory_serves_a_runner():
    """The same function is a loop factory."""
    with asyncio.Runner(loop_factory=HarnessEventLoopPolicy().new_event_loop) as runner:
        assert runner.run(asyncio.sleep(60, "slept")) == "slept"
    with asyncio.Runner(loop_factory=harness.new_event_loop) as runner:
        assert isinstance(runner.get_loop(), harness.ControlledLoop)


@pytest.mark.slow
def test_the_script_of_the_report_prints_its_own_output_under_the_policy():
    """Saved unchanged, it shows on our loop what it shows on the stock one."""
    script = str(DATA / "report_9615.py")
    code = (
        "import asyncio, runpy, harness; asyncio.set_event_loop_policy(harness.HarnessEventLoopPolicy()); "
        f"runpy.run_path({script!r}, run_name='__main__')"
    )
    stock = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, check=True)
    ours = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert ours.stdout == stock.stdout
    assert ours.stdout.splitlines()[-1] == "done was executed 2 times"


def test_rungs_label_the_least_assumption():
    """Overtaking a deadline needs latency; without it the same plan is exact."""
    from harness.search.recording import Planned

    async def sleeper(delay, order):
        await asyncio.sleep(delay)
        order.append(delay)

    async def program():
        order = []
        await asyncio.gather(sleeper(1, order), sleeper(2, order))
        return order

    # choice 0 is the order of sets; 1 and 2 are the ranks of the two sleeps
    held = {1: 1}
    latency = execute(program, Planned(held), settings=LoopSettings(rung=Rung.LATENCY, tracing=True))
    assert (latency.ending.value, latency.rung) == ([2, 1], Rung.LATENCY)
    assert [(one.split(" at ")[0], other.split(" at ")[0]) for one, other in latency.inversions] == [
        ("sleeper#2/sleep(2)", "sleeper/sleep(1)")
    ]
    exact = execute(program, Planned(held), settings=LoopSettings(rung=Rung.EXACT))
    assert (exact.ending.value, exact.rung) == ([1, 2], Rung.EXACT)


def test_a_deadline_at_infinity_never_comes():
    """``asyncio.sleep(math.inf)`` waits for its cancellation; with nothing else it is a deadlock."""

    async def cancelled():
        task = asyncio.create_task(asyncio.sleep(math.inf))
        await asyncio.sleep(1)
        task.cancel()
        return asyncio.get_running_loop().time()

    async def forever():
        await asyncio.sleep(math.inf)

    assert execute(cancelled).ending.value == pytest.approx(1, abs=0.01)
    for settings in (LoopSettings(), LoopSettings(allow_real_io=True)):
        assert execute(forever, settings=settings).ending.kind == "deadlock"


def test_debug_mode_does_not_keep_what_a_callback_raised():
    """As in stock asyncio, the frame that runs callbacks lets go of the last one (found by anyio's tests)."""

    async def program():
        asyncio.get_running_loop().set_debug(True)

        async def fail():
            raise ValueError

        error = None
        try:
            await asyncio.create_task(fail())
        except ValueError as caught:
            error = caught
        return [isinstance(referrer, asyncio.Task) for referrer in gc.get_referrers(error)]

    # Since 3.12 the finished task itself is still there, with stock asyncio as well.
    assert execute(program).ending.value == asyncio.run(program())
