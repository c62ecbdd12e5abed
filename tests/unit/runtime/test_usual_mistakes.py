"""What loops of this kind usually get wrong: each is as on the stock loop."""

import asyncio
import contextvars
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import pytest

from harness import ControlledLoop, HarnessEventLoopPolicy, LoopSettings, execute
from harness.runtime.identity import ControlledTask

WHO = contextvars.ContextVar("who", default="nobody")
NEWER_THAN_3_11 = sys.version_info >= (3, 12)


def on_both(program, **settings):
    """Run ``program(loop)`` on a stock loop and on ours, and return what came of it on ours, which is the same."""
    answers = []
    for loop in (asyncio.SelectorEventLoop(), ControlledLoop(settings=LoopSettings(**settings))):
        try:
            answers.append(program(loop))
        finally:
            if not loop.is_closed():
                loop.close()
    assert answers[1] == answers[0]
    return answers[1]


def test_the_exception_handler_runs_in_the_context_of_what_failed():
    """A callback's, a task's and a future's own context, as far as this Python does it."""

    def program(loop):
        seen = []
        loop.set_exception_handler(lambda _loop, context: seen.append((context["message"][-15:], WHO.get())))

        def fail():
            raise ValueError

        async def forgotten():
            WHO.set("task")
            raise ValueError

        async def main():
            context = contextvars.copy_context()
            context.run(WHO.set, "callback")
            loop.call_soon(fail, context=context)
            context = contextvars.copy_context()
            context.run(WHO.set, "timer")
            loop.call_later(0.001, fail, context=context)
            task = loop.create_task(forgotten())
            await asyncio.sleep(0.01)
            del task
            gc.collect()

        loop.run_until_complete(main())
        return seen

    seen = on_both(program)
    assert [who for _, who in seen[:2]] == (["callback", "timer"] if NEWER_THAN_3_11 else ["nobody", "nobody"])


def test_async_generators_are_shut_down():
    """``asyncio.run`` closes a generator that was left half-way, and one that was collected."""

    def program(loop):
        closed = []

        async def numbers(name):
            try:
                yield 1
                yield 2
            finally:
                await asyncio.sleep(0)
                closed.append(name)

        kept = numbers("kept")

        async def main():
            async for _ in numbers("dropped"):
                break
            gc.collect()
            await asyncio.sleep(0.001)
            await anext(kept)

        loop.run_until_complete(main())
        before = list(closed)
        loop.run_until_complete(loop.shutdown_asyncgens())
        return before, closed

    assert on_both(program) == (["dropped"], ["dropped", "kept"])


def test_debug_mode_logs_slow_callbacks_in_real_seconds(caplog):
    """A callback that takes long in real time is named; virtual hours are not slow."""

    def program(loop):
        caplog.clear()
        loop.set_debug(True)
        loop.slow_callback_duration = 0.05

        async def main():
            time.sleep(0.06)
            await asyncio.sleep(0.1)

        with caplog.at_level(logging.WARNING, "asyncio"):
            loop.run_until_complete(main())
        return [record.getMessage().split()[0] for record in caplog.records]

    assert on_both(program) == ["Executing"]
    loop = ControlledLoop()
    loop.set_debug(True)
    caplog.clear()
    loop.run_until_complete(asyncio.sleep(3600))
    loop.close()
    assert caplog.records == []


@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later"])
def test_debug_mode_says_who_scheduled_a_callback(method):
    """The traceback of a callback that fails ends with the caller, as on the stock loop."""

    def program(loop):
        reports = []
        loop.set_debug(True)
        loop.set_exception_handler(lambda _loop, context: reports.append(context["source_traceback"][-1].name))
        delay = (0.01,) if method == "call_later" else ()
        getattr(loop, method)(*delay, divmod, 1, 0)
        loop.run_until_complete(asyncio.sleep(0.02))
        return reports

    assert on_both(program) == ["program"]


def test_debug_mode_refuses_calls_from_other_threads():
    """``call_soon`` and ``call_at`` from a thread raise, ``call_soon_threadsafe`` with a coroutine too."""

    def program(loop):
        loop.set_debug(True)
        said = []

        async def coroutine():
            pass

        def work():
            for call in (
                lambda: loop.call_soon(print),
                lambda: loop.call_later(1, print),
                lambda: loop.call_soon_threadsafe(coroutine),
            ):
                try:
                    call()
                except (RuntimeError, TypeError) as error:
                    said.append(str(error).partition(" <")[0][:30])

        async def main():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        loop.run_until_complete(main())
        return said

    assert len(on_both(program)) == 3


def test_closing_with_pending_things_is_quiet_and_final():
    """Pending callbacks, timers, points and I/O do not keep a loop from closing; afterwards it refuses all."""

    def program(loop):
        loop.call_soon(print)
        loop.call_later(1, print)
        loop.close()
        loop.close()
        said = []
        for call in (
            lambda: loop.call_soon(print),
            lambda: loop.call_soon_threadsafe(print),
            lambda: loop.call_later(1, print),
            lambda: loop.call_at(1, print),
            lambda: loop.run_in_executor(None, print),
            lambda: loop.run_forever(),
        ):
            with pytest.raises(RuntimeError) as caught:
                call()
            said.append(str(caught.value))
        return said, loop.is_closed(), loop._ready, loop._scheduled

    said, closed, ready, timers = on_both(program)
    assert set(said) == {"Event loop is closed"}
    assert closed
    assert (len(ready), len(timers)) == (0, 0)


def test_a_thread_that_comes_after_the_close_is_refused():
    """``call_soon_threadsafe`` on a closed loop raises in the thread that calls."""

    def program(loop):
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        said = []

        def work():
            try:
                loop.call_soon_threadsafe(print)
            except RuntimeError as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return said

    assert on_both(program) == ["Event loop is closed"]


def test_no_task_factory_means_tasks_of_ours():
    """After ``set_task_factory(None)`` tasks still hash by number, and the getter says None."""
    loop = ControlledLoop()
    loop.set_task_factory(None)

    async def main():
        return type(asyncio.current_task())

    assert loop.get_task_factory() is None
    assert loop.run_until_complete(main()) is ControlledTask
    loop.close()


def test_a_task_factory_of_the_program_is_used():
    """Frameworks wrap the factory that they find."""

    def program(loop):
        made = []

        def factory(loop, coro, **kwargs):
            made.append(coro.__name__)
            return asyncio.Task(coro, loop=loop, **kwargs)

        async def child():
            return 7

        async def main():
            loop.set_task_factory(factory)
            return await loop.create_task(child(), name="named")

        return loop.run_until_complete(main()), made

    assert on_both(program) == (7, ["child"])


@pytest.mark.skipif(not NEWER_THAN_3_11, reason="eager tasks are new in 3.12")
def test_eager_tasks_start_at_once():
    """``eager_task_factory`` works, blocking and not, and its tasks hash by number too."""

    def program(loop):
        order = []

        async def child(name, pause):
            order.append(f"{name} begins")
            if pause:
                await asyncio.sleep(0)
            order.append(f"{name} ends")
            return name

        async def main():
            loop.set_task_factory(asyncio.eager_task_factory)
            tasks = [loop.create_task(child("quick", False)), loop.create_task(child("slow", True))]
            order.append("main")
            return await asyncio.gather(*tasks)

        return loop.run_until_complete(main()), order

    _, order = on_both(program)
    assert order == ["quick begins", "quick ends", "slow begins", "main", "slow ends"]

    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return type(asyncio.create_task(asyncio.sleep(0)))

    assert execute(main).ending.value is ControlledTask


def test_a_shut_down_executor_refuses_jobs():
    """After ``shutdown_default_executor`` the default one, and after its own shutdown a pool."""
    from concurrent.futures import ThreadPoolExecutor

    def program(loop):
        said = []

        async def main():
            pool = ThreadPoolExecutor(1)
            pool.shutdown()
            await loop.shutdown_default_executor()
            for executor in (None, pool):
                with pytest.raises(RuntimeError) as caught:
                    loop.run_in_executor(executor, print)
                said.append(str(caught.value))
            return said

        return loop.run_until_complete(main())

    assert len(on_both(program)) == 2


SCRIPT = """
import asyncio, os, signal, sys, threading, time
from harness import HarnessEventLoopPolicy, LoopSettings
asyncio.set_event_loop_policy(HarnessEventLoopPolicy(settings=LoopSettings(allow_real_io={allowed})))

async def main():
    {before}
    try:
        {work}
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
INTERRUPT = "threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("allowed", "before", "work"),
    [
        (False, INTERRUPT, "while True: await asyncio.sleep(0)"),
        (False, INTERRUPT, "while True: await asyncio.sleep(3600)"),
        (False, INTERRUPT, "await asyncio.get_running_loop().create_future()"),
        (True, INTERRUPT, "await asyncio.get_running_loop().create_future()"),
        (
            True,
            "r, w = os.pipe(); asyncio.get_running_loop().add_reader(r, print); " + INTERRUPT,
            "await asyncio.sleep(60)",
        ),
        (True, INTERRUPT, "await asyncio.to_thread(time.sleep, 1)"),
    ],
    ids=["polling", "sleeping", "waiting", "waiting-outside", "file", "job"],
)
def test_control_c_cancels_the_main_task_under_the_policy(allowed, before, work):
    """``asyncio.run`` cancels its main task and raises KeyboardInterrupt."""
    code = SCRIPT.format(allowed=allowed, before=before, work=work)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["cancelled", "interrupted"], done.stderr[-2000:]


class TestIsolatedTests(unittest.IsolatedAsyncioTestCase):
    """``unittest.IsolatedAsyncioTestCase`` under the policy, with real I/O."""

    @classmethod
    def setUpClass(cls):
        cls.before = asyncio.get_event_loop_policy()
        asyncio.set_event_loop_policy(HarnessEventLoopPolicy(settings=LoopSettings(allow_real_io=True)))

    @classmethod
    def tearDownClass(cls):
        asyncio.set_event_loop_policy(cls.before)

    async def asyncSetUp(self):
        WHO.set("setup")
        self.server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        self.addAsyncCleanup(self.server.wait_closed)

    async def asyncTearDown(self):
        self.server.close()

    async def test_setup_shares_its_context_and_its_loop(self):
        """A connection to the server of the set-up is closed by it."""
        assert isinstance(asyncio.get_running_loop(), ControlledLoop)
        if NEWER_THAN_3_11:
            assert WHO.get() == "setup"
        reader, writer = await asyncio.open_connection(*self.server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


def test_loops_leave_no_file_and_no_warning():
    """An unused loop with real I/O allowed opens its pipe and closes it."""
    before = len(os.listdir("/dev/fd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for allowed in (False, True):
            loop = ControlledLoop(settings=LoopSettings(allow_real_io=allowed))
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
        del loop
        gc.collect()
    assert len(os.listdir("/dev/fd")) == before


def test_signals_reach_a_handler_that_was_set_without_the_loop():
    """``signal.signal`` works as without a loop: the harness allows what does not go through the loop."""
    seen = []
    before = signal.signal(signal.SIGUSR2, lambda *_: seen.append("usr2"))
    try:

        async def program():
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.sleep(1)

        assert execute(program).ending.kind == "returned"
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert seen == ["usr2"]
