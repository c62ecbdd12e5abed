"""Real I/O, child processes, signals and foreign threads: allowed, or refused with the call site."""

import asyncio
import contextlib
import os
import queue
import random
import re
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import aiosqlite
import anyio
import anyio.to_thread
import pytest

from harness import LoopSettings, Rung, execute
from harness.model.outcome import digest_trace
from harness.runtime.threads import alive_threads, may_call_back
from harness.schedulers.ranks import Ranks
from harness.schedulers.uniform import Uniform

HERE = re.escape(__file__)


def run(program, scheduler=None, **settings):
    """Execute ``program`` once with real I/O allowed."""
    values = {"allow_real_io": True, "turn_limit": 100_000, "tracing": True, **settings}
    return execute(program, scheduler, settings=LoopSettings(**values))


def returned(program, **settings):
    """Execute ``program`` once with real I/O allowed and return what it returned."""
    execution = run(program, **settings)
    assert execution.ending.kind == "returned", execution.ending.detail or execution.ending.error
    assert execution.used_real_io
    return execution.ending.value


def deliveries(execution):
    """Return the arrivals from outside that the trace records, in order."""
    return [turn.what for turn in execution.trace if turn.what.startswith("deliver ")]


async def answer_after(seconds, data=b"pong"):
    """Start a server that answers the first line of each connection after real ``seconds``; return its port."""

    async def serve(reader, writer):
        async with closing(writer):
            await reader.readline()
            await asyncio.to_thread(time.sleep, seconds)
            writer.write(data)
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def closing(writer):
    """Close a stream at the end, also after a cancellation."""
    try:
        yield
    finally:
        writer.close()
        await writer.wait_closed()


async def ask(port):
    """Ask the server for its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with closing(writer):
        writer.write(b"ping\n")
        return await reader.read()


# -- allowed -------------------------------------------------------------------------------------


def test_streams_work_over_real_sockets():
    """A server and its client in one program, as on the stock loop."""

    async def program():
        server, port = await answer_after(0)
        answers = [await ask(port) for _ in range(3)]
        server.close()
        await server.wait_closed()
        return answers

    assert returned(program) == [b"pong"] * 3


def test_a_timeout_does_not_come_before_a_slow_answer():
    """With I/O outstanding, virtual time follows real time instead of jumping to the deadline."""

    async def program():
        server, port = await answer_after(0.1)
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await asyncio.wait_for(ask(port), timeout=20)
        took = loop.time() - began
        server.close()
        return answer, took

    answer, took = returned(program)
    assert answer == b"pong"
    assert 0.05 < took < 5


def test_a_timeout_comes_while_an_answer_is_slower():
    """A timer that is due is delivered in real time, before I/O that comes later."""

    async def program():
        server, port = await answer_after(0.4)
        task = asyncio.ensure_future(ask(port))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), timeout=0.05)
        answer = await task
        server.close()
        return answer

    assert returned(program) == b"pong"


def test_a_stream_of_arrivals_does_not_starve_a_due_timer():
    """Two sockets that always have something to read leave room for deadlines."""

    async def program():
        loop = asyncio.get_running_loop()
        left, right = socket.socketpair()
        left.setblocking(False)
        right.setblocking(False)
        loop.add_reader(left, lambda: left.send(left.recv(10)))
        loop.add_reader(right, lambda: right.send(right.recv(10)))
        left.send(b"x")
        try:
            await asyncio.sleep(0.02)
        finally:
            loop.remove_reader(left)
            loop.remove_reader(right)
            left.close()
            right.close()
        return "woke"

    assert returned(program) == "woke"


def test_time_jumps_again_when_nothing_is_outstanding():
    """A closed connection, a finished job and an idle pool thread do not slow later sleeps."""

    async def program():
        server, port = await answer_after(0)
        await ask(port)
        server.close()
        await server.wait_closed()
        await asyncio.to_thread(len, "")
        began = time.monotonic()
        await asyncio.sleep(1000)
        return time.monotonic() - began

    assert returned(program) < 2


def test_idle_workers_of_the_programs_own_pool_do_not_slow_sleeps():
    """Jobs in flight are what counts, not threads that wait for jobs."""

    async def program():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(3) as pool:
            await asyncio.gather(*(loop.run_in_executor(pool, len, "") for _ in range(5)))
            began = time.monotonic()
            await asyncio.sleep(1000)
            return time.monotonic() - began

    assert returned(program) < 2


def test_a_job_in_flight_holds_a_timeout_back():
    """A real job of 0.1 s answers before a timeout of 20 s."""

    async def program():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            await asyncio.wait_for(loop.run_in_executor(pool, time.sleep, 0.1), timeout=20)
            return loop.time()

    assert 0.05 < returned(program) < 5


@pytest.mark.slow
def test_a_process_pool_works_and_its_idle_helpers_do_not_slow_sleeps():
    """Jobs of other processes answer; the pool's own threads count for nothing."""

    async def program():
        loop = asyncio.get_running_loop()
        with ProcessPoolExecutor(1, mp_context=__import__("multiprocessing").get_context("spawn")) as pool:
            value = await asyncio.wait_for(loop.run_in_executor(pool, abs, -7), timeout=60)
            began = time.monotonic()
            await asyncio.sleep(1000)
            return value, time.monotonic() - began < 5

    assert returned(program) == (7, True)


def test_child_processes_work():
    """Pipes and the exit status of a child arrive."""

    async def program():
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "print(input().upper())",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await asyncio.wait_for(child.communicate(b"hello\n"), timeout=60)
        return output.strip(), child.returncode

    assert returned(program) == (b"HELLO", 0)


def test_a_child_without_pipes_is_waited_for_longer_than_a_thread():
    """A child process ends for sure: no bound for threads applies to it."""

    async def program():
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(0.2)")
        return await child.wait()

    assert returned(program, external_wait_s=0.05) == 0


def test_a_signal_handler_runs_and_its_arrival_is_in_the_trace():
    """A handler that was added to the loop runs as an op of its own."""

    async def program():
        loop = asyncio.get_running_loop()
        seen = loop.create_future()
        loop.add_signal_handler(signal.SIGUSR1, seen.set_result, "usr1")
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        value = await asyncio.wait_for(seen, timeout=30)
        loop.remove_signal_handler(signal.SIGUSR1)
        return value

    execution = run(program)
    assert execution.ending.value == "usr1"
    assert [what for what in deliveries(execution) if "signal" in what] == [
        "deliver signal:ControlledFuture.set_result"
    ]


def test_run_coroutine_threadsafe_works_from_a_real_thread():
    """A thread asks the loop and gets its answer; the loop waits for it, and calls it no deadlock."""

    async def double(value):
        await asyncio.sleep(1000)
        return value * 2

    async def program():
        loop = asyncio.get_running_loop()
        answers = queue.SimpleQueue()
        over = loop.create_future()

        def work():
            time.sleep(0.03)
            answers.put(asyncio.run_coroutine_threadsafe(double(21), loop).result())
            loop.call_soon_threadsafe(over.set_result, None)

        threading.Thread(target=work).start()
        await over
        return answers.get()

    execution = run(program)
    assert execution.ending.value == 42
    assert [what for what in deliveries(execution) if "sleep" not in what] == [
        "deliver thread:run_coroutine_threadsafe.callback",
        "deliver thread:ControlledFuture.set_result",
    ]


def test_a_thread_that_is_older_than_the_loop_is_waited_for():
    """A thread that was started before the program calls back all the same."""
    box = queue.SimpleQueue()

    def work():
        loop, future = box.get()
        time.sleep(0.05)
        loop.call_soon_threadsafe(future.set_result, "late")

    threading.Thread(target=work).start()

    async def program():
        future = asyncio.get_running_loop().create_future()
        box.put((asyncio.get_running_loop(), future))
        return await future

    assert returned(program) == "late"


def test_a_program_may_poll_for_a_thread_without_end_of_turns():
    """Polling is slowed to real time while a thread is busy, so that the turn limit is not met."""

    async def program():
        done = []
        loop = asyncio.get_running_loop()

        def work():
            time.sleep(0.2)
            loop.call_soon_threadsafe(done.append, 1)

        threading.Thread(target=work).start()
        while not done:
            await asyncio.sleep(0)
        return done

    assert returned(program, turn_limit=20_000) == [1]


def test_aiosqlite_works_with_its_own_thread():
    """A library with a worker thread per connection."""

    async def program():
        async with aiosqlite.connect(":memory:") as db:
            await db.execute("create table t (x)")
            await db.execute("insert into t values (7)")
            async with db.execute("select x from t") as cursor:
                return await cursor.fetchall()

    assert returned(program) == [(7,)]


def test_an_open_connection_of_aiosqlite_does_not_slow_sleeps():
    """Its thread waits for work between two statements."""

    async def program():
        async with aiosqlite.connect(":memory:") as db:
            await db.execute("select 1")
            began = time.monotonic()
            await asyncio.sleep(1000)
            return time.monotonic() - began

    assert returned(program) < 2


def test_anyio_to_thread_works_and_its_idle_worker_does_not_slow_sleeps():
    """A library with workers of its own, which wait on a queue between jobs."""

    async def program():
        value = await anyio.to_thread.run_sync(lambda: 7)
        began = time.monotonic()
        await asyncio.sleep(1000)
        return value, time.monotonic() - began < 2

    assert returned(program) == (7, True)


def test_a_loop_in_a_thread_serves_the_main_thread():
    """``run_forever`` in a thread waits for callers for longer than it would wait for a silent thread."""
    from harness.runtime.loop import ControlledLoop

    loop = ControlledLoop(settings=LoopSettings(allow_real_io=True, external_wait_s=0.01))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        time.sleep(0.1)
        assert asyncio.run_coroutine_threadsafe(asyncio.sleep(3, "served"), loop).result(timeout=10) == "served"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
    assert not thread.is_alive()


# -- arrivals are ops ----------------------------------------------------------------------------


class HoldFirstArrival:
    """Holds the first arrival from a file back, and nothing else."""

    def __init__(self):
        self.subjects = []

    def choose(self, point, /):
        if point.kind != "hold" or not str(point.subject).startswith("io:"):
            return 0
        self.subjects.append(str(point.subject))
        return int(len(self.subjects) == 1)


async def two_readable_sockets():
    """Read from two sockets that are both ready; return the order in which they were read."""
    loop = asyncio.get_running_loop()
    pairs = [socket.socketpair() for _ in range(2)]
    order = []
    over = loop.create_future()

    def read(name, sock):
        sock.recv(10)
        order.append(name)
        if len(order) == 2:
            over.set_result(None)

    for name, (left, right) in zip("ab", pairs, strict=True):
        loop.add_reader(left, read, name, left)
        right.send(b"x")
    await over
    for left, right in pairs:
        loop.remove_reader(left)
        left.close()
        right.close()
    return order


def test_arrivals_come_in_order_of_files_by_default():
    """The default order of answers that are there at once is the same every time."""
    executions = [run(two_readable_sockets) for _ in range(3)]
    assert [execution.ending.value for execution in executions] == [["a", "b"]] * 3
    assert len({digest_trace(execution.trace) for execution in executions}) == 1
    assert deliveries(executions[0]) == ["deliver io:two_readable_sockets.read"] * 2


def test_the_scheduler_decides_the_order_of_arrivals():
    """A held answer comes after the others; stock asyncio can do that, and the rung says so."""
    scheduler = HoldFirstArrival()
    execution = run(two_readable_sockets, scheduler)
    assert execution.ending.value == ["b", "a"]
    assert execution.rung is Rung.EXACT
    assert execution.schedule.decisions[0].kind == "hold"


class Always:
    """Takes one option of every arrival: the first one, or with -1 the last one, which is a timer if there is one."""

    def __init__(self, index):
        self.index = index

    def choose(self, point, /):
        return self.index % len(point.enabled) if point.kind == "arrival" else 0


@pytest.mark.parametrize(
    ("index", "timeout_s", "ending"),
    [(0, 0.2, "returned"), (-1, 0.2, "raised"), (-1, 20, "returned")],
    ids=["default", "short timeout", "long timeout"],
)
def test_an_index_scheduler_jumps_ahead_of_an_answer_only_when_it_holds_it(index, timeout_s, ending):
    """By default the answer is in time; held back, it is late for a short timeout and never for a long one."""

    async def program():
        server, port = await answer_after(0.01)
        async with server:
            return await asyncio.wait_for(ask(port), timeout=timeout_s)

    began = time.monotonic()
    assert run(program, Always(index), discipline="indices").ending.kind == ending
    assert time.monotonic() - began < 5


def test_a_loop_beside_the_main_thread_does_not_jump_ahead_of_it():
    """The main thread may still call: what it asks for at once comes before a sleep of an hour ends."""
    ended = []

    async def program():
        try:
            await asyncio.sleep(3600)
            ended.append("slept")
        except asyncio.CancelledError:
            ended.append("cancelled")

    async def serve(ready):
        task = asyncio.create_task(program())
        ready.put((asyncio.get_running_loop(), task))
        await task

    ready = queue.Queue()
    thread = threading.Thread(target=run, args=(lambda: serve(ready),))
    thread.start()
    loop, task = ready.get()
    time.sleep(0.05)
    loop.call_soon_threadsafe(task.cancel)
    thread.join()
    assert ended == ["cancelled"]


def test_a_main_thread_that_only_joins_does_not_slow_sleeps():
    """Nobody but the loop can end the join, so virtual time goes on."""
    began = time.monotonic()
    thread = threading.Thread(target=run, args=(lambda: asyncio.sleep(3600),))
    thread.start()
    thread.join()
    assert time.monotonic() - began < 5


def test_a_turn_that_blocks_for_a_thread_finds_its_callback_in_the_queue():
    """As on stock asyncio: what the thread scheduled before it ended runs in the next iteration."""

    async def program():
        loop = asyncio.get_running_loop()
        order = []

        def work():
            loop.call_soon_threadsafe(order.append, "thread")
            time.sleep(0.01)
            loop.call_soon_threadsafe(order.append, "thread again")

        thread = threading.Thread(target=work)
        thread.start()
        loop.call_soon(order.append, "before")
        thread.join()
        loop.call_soon(order.append, "after")
        await asyncio.sleep(0)
        return order

    assert run(program).ending.value == ["before", "thread", "thread again", "after"]


class HoldAll:
    """Holds everything."""

    def choose(self, point, /):
        return int(point.kind == "hold")


@pytest.mark.parametrize(("discipline", "make"), [("ranks", Ranks), ("indices", Uniform)])
def test_no_schedule_turns_the_callbacks_of_one_thread_or_signals_around(make, discipline):
    """Stock asyncio queues them as they come: the second never overtakes the first."""

    async def program():
        loop = asyncio.get_running_loop()
        order, over = [], asyncio.Event()

        def work():
            for number in range(3):
                loop.call_soon_threadsafe(order.append, number)
            loop.call_soon_threadsafe(over.set)

        signals = []
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, signals.append, number)
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.005)
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR2)
        await over.wait()
        while len(signals) < 2:
            await asyncio.sleep(0)
        return order, signals

    for seed in range(10):
        ending = run(program, make(random.Random(seed)), discipline=discipline).ending
        assert ending.value == ([0, 1, 2], [signal.SIGUSR1, signal.SIGUSR2]), ending


@pytest.mark.parametrize(("timeout_s", "ending"), [(0.05, "raised"), (60, "returned")])
def test_a_held_answer_of_a_thread_is_not_outlasted_by_a_minute(timeout_s, ending):
    """A library's own timeout of a minute means "never"; a machine that stops for so long is no finding."""

    async def program():
        async with asyncio.timeout(timeout_s):
            await asyncio.to_thread(time.sleep, 0.01)

    assert run(program, HoldAll()).ending.kind == ending


def test_a_polling_program_does_not_outlast_a_held_answer():
    """While a program polls, its clock runs ahead of the machine's, but not of an answer that is there."""

    async def program():
        loop = asyncio.get_running_loop()
        answers = []
        threading.Thread(target=loop.call_soon_threadsafe, args=(answers.append, 7)).start()
        async with asyncio.timeout(5):
            while not answers:
                await asyncio.sleep(0)
        return answers

    assert run(program, HoldAll()).ending.value == [7]
    assert run(program).ending.value == [7]


@pytest.mark.parametrize(("timeout_s", "early"), [(0.1, True), (1, False)])
def test_no_long_timeout_comes_early_while_a_program_polls_a_file_by_itself(timeout_s, early):
    """What a program asks the system for without the loop may be on its way, and the loop cannot know."""

    async def program():
        turns = 0
        try:
            async with asyncio.timeout(timeout_s):
                while turns < 20:
                    turns += 1
                    await asyncio.sleep(0)
        except TimeoutError:
            return True
        return False

    assert run(program, Always(-1), discipline="indices").ending.value is early


@pytest.mark.parametrize("rung", list(Rung), ids=lambda rung: rung.name.lower())
@pytest.mark.parametrize(("discipline", "make"), [("ranks", Ranks), ("indices", Uniform)])
def test_sockets_children_and_threads_together_work_under_random_schedules(rung, discipline, make):
    """Whatever the order of arrivals is, nothing hangs, deadlocks or times out."""

    async def select():
        async with aiosqlite.connect(":memory:") as db, db.execute("select 7") as cursor:
            await asyncio.sleep(0.002)
            return await cursor.fetchall()

    async def spawn_true():
        child = await asyncio.create_subprocess_exec("true")
        return await child.wait()

    async def program():
        server, port = await answer_after(0.002)
        async with server:
            answers = await asyncio.gather(ask(port), ask(port), select(), spawn_true())
        return answers

    for seed in range(3):
        execution = run(program, make(random.Random(seed)), discipline=discipline, rung=rung)
        assert execution.ending.value == [b"pong", b"pong", [(7,)], 0], execution.ending


# -- silent threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [True, False])
def test_a_silent_thread_is_named_and_no_deadlock(allowed):
    """After a bounded time the ending says which thread was waited for, and where it is."""
    gate = threading.Event()

    async def program():
        threading.Thread(target=gate.wait, name="oracle", args=(30,)).start()
        await asyncio.get_running_loop().create_future()

    try:
        began = time.monotonic()
        ending = run(program, allow_real_io=allowed, external_wait_s=0.1).ending
        assert ending.kind == "uncontrolled"
        assert "in 0.1 s of real time no answer came from thread 'oracle'" in ending.detail
        assert f"program waits for a Future that nothing completes at {__file__}" in ending.detail
        assert time.monotonic() - began < 3
    finally:
        gate.set()


def test_a_job_that_never_answers_is_named():
    """A real job is waited for during a bounded time too."""
    gate = threading.Event()

    async def program():
        await asyncio.get_running_loop().run_in_executor(pool, gate.wait, 30)

    with ThreadPoolExecutor(1) as pool:
        try:
            ending = run(program, external_wait_s=0.1).ending
        finally:
            gate.set()
    assert ending.kind == "uncontrolled"
    assert "1 executor jobs" in ending.detail


def test_without_threads_a_deadlock_is_a_deadlock_at_once():
    """Allowing real I/O does not make the loop wait where nobody can answer."""

    async def program():
        await asyncio.to_thread(len, "")
        await asyncio.get_running_loop().create_future()

    began = time.monotonic()
    assert run(program, external_wait_s=30).ending.kind == "deadlock"
    assert time.monotonic() - began < 5


def test_a_thread_that_ends_without_an_answer_is_no_longer_waited_for():
    """The loop looks again while it waits."""

    async def program():
        threading.Thread(target=time.sleep, args=(0.05,)).start()
        await asyncio.get_running_loop().create_future()

    began = time.monotonic()
    assert run(program, external_wait_s=30).ending.kind == "deadlock"
    assert time.monotonic() - began < 5


def test_waiting_outside_is_no_stall():
    """The watchdog leaves a loop alone that waits for a slow child."""
    from harness.runtime import watchdog

    watch = watchdog._Watch()
    watch.loop = type("Loop", (), {"turn": 1, "choices": 1, "waiting_outside": True})
    watch.check(0, None)
    watch.since = -1e9
    watch.check(0, None)
    assert watch.loop is not None


def test_idle_threads_are_told_from_busy_ones():
    """A worker that waits for jobs, and a thread that waits on an empty queue, call nobody."""
    known = alive_threads()
    jobs, owner = queue.Queue(), type("Owner", (), {})()
    owner.jobs = queue.SimpleQueue()

    def take():
        while owner.jobs.get():
            pass

    threading.Thread(target=jobs.get, name="waits on a queue").start()
    threading.Thread(target=take, name="waits on a simple queue").start()
    gate = threading.Event()
    busy = threading.Thread(target=gate.wait, name="busy", args=(30,))
    busy.start()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(len, "").result()
        deadline = time.monotonic() + 5
        while len(may_call_back(known, turn=0)) > 1 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert may_call_back(known, turn=0) == [busy]
    gate.set()
    jobs.put(None)
    owner.jobs.put(None)


# -- refused -------------------------------------------------------------------------------------


async def connect():
    await asyncio.open_connection("127.0.0.1", 9)


async def serve():
    await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)


async def spawn():
    await asyncio.create_subprocess_exec(sys.executable, "-V")


async def spawn_shell():
    await asyncio.create_subprocess_shell("true")


async def handle_signal():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)


async def watch_file():
    asyncio.get_running_loop().add_reader(0, print)


async def resolve():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def receive():
    with contextlib.closing(socket.socket()) as sock:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_recv(sock, 1)


async def send_datagram():
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 0))


async def read_pipe():
    await asyncio.get_running_loop().connect_read_pipe(asyncio.Protocol, sys.stdin)


async def use_processes():
    with ProcessPoolExecutor(1) as pool:
        await asyncio.get_running_loop().run_in_executor(pool, abs, 1)


REFUSED = [connect, serve, spawn, spawn_shell, handle_signal, watch_file, resolve, receive, send_datagram, read_pipe]


@pytest.mark.parametrize("program", [*REFUSED, use_processes], ids=lambda program: program.__name__)
def test_the_outside_is_refused_with_file_and_line(program):
    """The message names the line of the program, not one of asyncio or of the harness."""
    ending = run(program, allow_real_io=False).ending
    assert ending.kind == "uncontrolled", ending
    first, last = program.__code__.co_firstlineno, max(line for _, _, line in program.__code__.co_lines() if line)
    found = re.search(rf" at {HERE}:(\d+): the harness does not control", ending.detail)
    assert found, ending.detail
    assert first < int(found[1]) <= last


def test_a_callback_from_a_thread_is_refused_with_the_threads_line():
    """The message names the thread and the line that called the loop."""

    async def program():
        loop = asyncio.get_running_loop()

        def work():
            loop.call_soon_threadsafe(print)

        threading.Thread(target=work, name="worker").start()
        await asyncio.sleep(1000)

    ending = run(program, allow_real_io=False).ending
    assert ending.kind == "uncontrolled"
    assert re.match(rf"a callback from thread 'worker' at {HERE}:\d+: ", ending.detail)


def test_a_library_that_reaches_outside_is_named_after_the_programs_line():
    """The program's own line comes first; of a library's thread, what the program waits for is told."""

    async def program():
        await anyio.open_process(["true"])

    detail = run(program, allow_real_io=False).ending.detail
    assert re.search(rf" at {HERE}:\d+ \(through .*anyio.*:\d+\): the harness", detail), detail

    async def other():
        await anyio.to_thread.run_sync(len, "")

    detail = run(other, allow_real_io=False).ending.detail
    assert re.match(r"a callback from thread 'AnyIO worker thread' at .*anyio.*:\d+: ", detail), detail
    assert "other waits for " in detail


def test_a_thread_is_refused_before_a_timeout_that_waits_for_it():
    """A foreign thread that answers late is what is reported, not a timeout that the harness invented."""

    async def program():
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def work():
            time.sleep(0.1)
            loop.call_soon_threadsafe(future.set_result, None)

        threading.Thread(target=work).start()
        await asyncio.wait_for(future, timeout=20)

    assert run(program, allow_real_io=False).ending.kind == "uncontrolled"


def test_waiting_for_silent_threads_is_bounded_per_execution():
    """A helper thread that never calls back costs ``external_wait_s`` once, however many sleeps there are."""
    gate = threading.Event()

    async def program():
        threading.Thread(target=gate.wait, args=(30,)).start()
        for _ in range(50):
            await asyncio.sleep(10)

    try:
        began = time.monotonic()
        execution = run(program, allow_real_io=False, external_wait_s=0.1)
        assert execution.ending.kind == "returned"
        assert time.monotonic() - began < 3
        assert 500 <= execution.now_s < 501
    finally:
        gate.set()
