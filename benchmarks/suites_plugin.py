"""A pytest plugin that puts a loop of ours under somebody else's suite, and says what became of each test.

Owns the injection and the log of outcomes; must not know which suite it runs.

Loaded with ``-p suites_plugin``. Environment: SUITES_MODE ``stock``, ``default``, ``exact`` or ``paused``;
SUITES_SCHEDULE, the ordinal of the schedule; SUITES_CLOCKS, set when the suite reads the process's clocks itself;
SUITES_EVENTS, a file of one JSON object per line; SUITES_SKIP, a JSON list of tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODE = os.environ.get("SUITES_MODE", "stock")
SCHEDULE = int(os.environ.get("SUITES_SCHEDULE", "0"))
_OWNER = os.getpid()


class StoppedClocks:
    """The process's clocks, which go on while the process is stopped (SIGSTOP).

    They are moved instead of stopping the process, and all alike: a program may compare them.
    """

    STOP_S = 90.0
    NAMES = ("monotonic", "perf_counter", "time")

    def __init__(self) -> None:
        self.stopped_s = 0.0
        for name in self.NAMES:
            self._move(name, 1)
            self._move(f"{name}_ns", 10**9)

    def _move(self, name: str, scale: int) -> None:
        real = getattr(time, name)
        setattr(time, name, lambda: real() + type(scale)(self.stopped_s) * scale)

    def stop(self) -> None:
        """Let the clocks be as after a stop."""
        self.stopped_s += self.STOP_S


class PausedLoop(asyncio.SelectorEventLoop):
    """The stock selector loop with its real clock, in a process that is held up now and then.

    The loop's thread may lose the processor before any iteration, and so may another thread before it calls back: what
    a busy machine does to a program, and so nothing that the program may rule out. A test that fails here and passes on
    an idle machine depends on the machine's speed.
    """

    PAUSES_S = (0.002, 0.02, 0.12, 0.3)
    BUDGET_S = 4.0

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._odds = source.choice((0.05, 0.2, 0.5))
        self._left_s = self.BUDGET_S
        super().__init__()

    def _pause(self) -> None:
        if self._source.random() < 0.05:
            CLOCKS.stop()
        pause_s = self._source.choice(self.PAUSES_S)
        if self._source.random() < self._odds and pause_s <= self._left_s:
            self._left_s -= pause_s
            time.sleep(pause_s)

    def _run_once(self) -> None:
        self._pause()
        super()._run_once()  # type: ignore[misc]

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        """Schedule from any thread, after a pause when it is another one."""
        if self._thread_id not in (None, threading.get_ident()):  # type: ignore[attr-defined]
            self._pause()
        return super().call_soon_threadsafe(callback, *args, context=context)


class Injection:
    """Makes the loops of a suite and counts how often one of them runs.

    invariant: the seed of a loop is a function of the test, the schedule and how many loops the test made before, so
    that a test that fails in a suite fails alone too.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.test = ""
        self.loops_of_test = 0
        self.make = {"stock": self._stock, "default": self._default, "exact": self._exact, "paused": self._paused}[MODE]

    def __call__(self) -> asyncio.AbstractEventLoop:
        return self.make()

    def begin(self, test: str) -> None:
        """Note which test makes the next loops."""
        self.test, self.loops_of_test = test, 0

    def _stock(self) -> asyncio.AbstractEventLoop:
        return self._counted(asyncio.SelectorEventLoop)()

    def _default(self) -> asyncio.AbstractEventLoop:
        from harness import ControlledLoop, LoopSettings

        return self._counted(ControlledLoop)(None, settings=LoopSettings(allow_real_io=True))

    def _exact(self) -> asyncio.AbstractEventLoop:
        from harness import ControlledLoop, LoopSettings, Rung
        from harness.schedulers import ranks, uniform

        plugin = (ranks, uniform)[SCHEDULE % 2].PLUGIN
        settings = LoopSettings(allow_real_io=True, rung=Rung.EXACT, discipline=plugin.discipline)
        return self._counted(ControlledLoop)(plugin.make(self._source()), settings=settings)

    def _paused(self) -> asyncio.AbstractEventLoop:
        return self._counted(PausedLoop)(self._source())

    def _source(self) -> random.Random:
        seed = zlib.crc32(f"{self.test} {SCHEDULE} {self.loops_of_test}".encode())
        self.loops_of_test += 1
        return random.Random(seed)

    def _counted(self, loop_class: type) -> Callable[..., asyncio.AbstractEventLoop]:
        """Return a factory of ``loop_class`` whose loops are counted each time they start to run."""

        def make(*args: Any, **kwargs: Any) -> asyncio.AbstractEventLoop:
            loop: Any = loop_class(*args, **kwargs)
            run_forever = loop.run_forever

            def counted() -> None:
                self.runs += 1
                run_forever()

            loop.run_forever = counted
            return loop

        return make


def _follow(name: str, scale: float) -> None:
    """Let a clock of the process follow the controlled loop of the thread that reads it, as in a search.

    A program that bounds its waits by ``time.monotonic`` would see none of the virtual time that passes.
    """
    real = getattr(time, name)

    def read() -> Any:
        loop: Any = asyncio._get_running_loop()
        if not hasattr(loop, "scratch"):
            return real()
        passed = loop.polled_time() * scale
        passed = passed if scale == 1 else round(passed)
        return loop.scratch.setdefault(f"clock {name}", real() - passed) + passed

    setattr(time, name, read)


def _follow_clocks() -> None:
    from harness.runtime import clock  # noqa: F401  # it keeps the real clock

    for name in ("monotonic", "perf_counter", "time"):
        _follow(name, 1)
        _follow(f"{name}_ns", 1e9)


if os.environ.get("SUITES_CLOCKS") and MODE in ("default", "exact"):
    _follow_clocks()
if MODE == "paused":
    CLOCKS = StoppedClocks()
INJECTION = Injection()


def _install() -> None:
    """Make our factory what every default route to a loop returns.

    Patched below the policies, because many suites call ``set_event_loop_policy(None)``; then ``new_event_loop``,
    ``Runner``, ``asyncio.run``, ``IsolatedAsyncioTestCase`` and anyio all reach it.
    """
    from asyncio import unix_events

    for name in ("_UnixDefaultEventLoopPolicy", "_DefaultEventLoopPolicy"):
        policy = getattr(unix_events, name, None)
        if policy is not None:
            policy._loop_factory = staticmethod(INJECTION)


class Log:
    """Appends one JSON object per event, so that a hang or a crash loses nothing."""

    def __init__(self) -> None:
        path = os.environ.get("SUITES_EVENTS")
        self.file = open(path, "a", buffering=1) if path else None  # noqa: SIM115  # it lives as long as the session
        self.open: dict[str, dict[str, Any]] = {}

    def write(self, **event: Any) -> None:
        """Append ``event``, from the process that pytest was started in only."""
        if self.file is not None and os.getpid() == _OWNER:
            self.file.write(json.dumps(event) + "\n")


LOG = Log()
_install()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what an earlier child decided."""
    LOG.write(event="collected", tests=[item.nodeid for item in items])
    skip_file = os.environ.get("SUITES_SKIP")
    skip = set(json.loads(Path(skip_file).read_text())) if skip_file else set()
    left_out = [item for item in items if item.nodeid in skip]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in skip]


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """Open the record of a test."""
    INJECTION.begin(nodeid)
    LOG.open[nodeid] = {"outcome": "pass", "message": "", "runs": INJECTION.runs, "began": time.monotonic()}
    LOG.write(event="start", test=nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the first thing that went wrong."""
    record = LOG.open.get(report.nodeid)
    if record is None:
        return
    if report.failed and record["outcome"] in ("pass", "skip", "xfail"):
        record["outcome"] = "fail" if report.when == "call" else "error"
        crash = getattr(report.longrepr, "reprcrash", None)
        record["message"] = (getattr(crash, "message", None) or str(report.longrepr)[-300:])[:300]
    elif report.skipped and record["outcome"] == "pass":
        record["outcome"] = "xfail" if hasattr(report, "wasxfail") else "skip"


def pytest_runtest_logfinish(nodeid: str, location: Any) -> None:
    """Write the record of a test."""
    record = LOG.open.pop(nodeid, None)
    if record is not None:
        LOG.write(
            event="end",
            test=nodeid,
            outcome=record["outcome"],
            message=record["message"],
            runs=INJECTION.runs - record["runs"],
            seconds=round(time.monotonic() - record["began"], 3),
        )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Say that every test was reached."""
    LOG.write(event="done")
