"""Run one module of CPython's own asyncio tests on a loop of ours, or on the stock loop, and report each test.

Owns how a loop gets into tests that know nothing of it; needs only the standard library and ``harness.runtime``.
Nothing of CPython's tests is kept or changed: they come with the interpreter that runs this file.

Usage: python child.py LOOP SCOPE MODULE EVENTS DECIDED. LOOP: ``stock`` or ``ours``. EVENTS: a file to append
one JSON object per line to. DECIDED: a JSON file with the tests that are not run again.

SCOPE ``loop``: every route to a loop leads to ours. SCOPE ``clock``: the tests' own hand-driven loop is
replaced too, with which most tests of tasks, futures and locks run; their timers then fire in virtual time.
"""

import asyncio
import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import unittest
import warnings

from harness.runtime.loop import ControlledLoop, LoopSettings

STOCK_FACTORIES = (None, asyncio.SelectorEventLoop, getattr(asyncio, "EventLoop", None))


class Factory:
    """Makes the loops of one run, and counts them and how often one of them began to run."""

    def __init__(self, loop):
        self.loop = loop
        self.made = 0
        self.ran = 0
        self.alive = []

    def __call__(self, *_args, **_kwargs):
        self.made += 1
        # A child process of a busy machine may take its time; tests have a limit of their own.
        loop = (
            ControlledLoop(settings=LoopSettings(allow_real_io=True, external_wait_s=60))
            if self.loop == "ours"
            else asyncio.SelectorEventLoop()
        )
        self.alive.append(loop)
        return loop

    def watch(self):
        """Notice each time that a loop of this factory begins to run."""
        original = asyncio.events._set_running_loop

        def set_running_loop(loop):
            if any(loop is other for other in self.alive):
                self.ran += 1
            return original(loop)

        asyncio.events._set_running_loop = set_running_loop

    def install(self):
        """Make it what every route to a loop uses: tests reset the policy, so it is put on the policy's class."""
        for name in ("_UnixDefaultEventLoopPolicy", "_DefaultEventLoopPolicy"):
            if policy := getattr(asyncio.unix_events, name, None):
                policy._loop_factory = staticmethod(self)


def replace_hand_driven_loop(factory):
    """Let ``new_test_loop`` of the tests' base class return a loop of the factory."""
    from test.test_asyncio import utils

    def new_test_loop(self, gen=None):
        loop = factory()
        self.set_event_loop(loop)
        return loop

    utils.TestCase.new_test_loop = new_test_loop


def flatten(suite):
    """Yield the tests of a suite of suites."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def inject(classes, factory):
    """Replace what makes a loop in ``classes``; return the classes that then only repeat another one."""
    repeated, kept = set(), {}
    for cls in classes:
        if issubclass(cls, unittest.IsolatedAsyncioTestCase) and getattr(cls, "loop_factory", None) in STOCK_FACTORIES:
            cls.loop_factory = None
        if replace_hook(cls, "create_event_loop", factory):
            # Classes that differ by their selector only (select, poll, epoll) are one class with our loop.
            if cls.__bases__ in kept:
                repeated.add(cls)
            kept.setdefault(cls.__bases__, cls)
        if "new_loop" in cls.__dict__:
            replace_hook(cls, "new_loop", factory)
        for base in cls.__mro__:
            if base.__module__.endswith("test_runners") and base.__name__ == "BaseTest":
                base.new_loop = lambda self: with_noted_shutdown(factory())
    return repeated


def replace_hook(cls, hook, factory):
    """Replace the method ``hook`` of a test class, if CPython's tests define one for it."""
    owner = next((base for base in cls.__mro__ if hook in base.__dict__), None)
    if owner is None or not owner.__module__.startswith("test.test_asyncio") or owner.__name__ == "TestPolicy":
        return False
    setattr(cls, hook, lambda self, *args, **kwargs: factory())
    return True


def with_noted_shutdown(loop):
    """Return a loop that notes its ``shutdown_asyncgens``, as the mocked loop of test_runners does."""
    loop.shutdown_ag_run = False

    async def shutdown_asyncgens():
        loop.shutdown_ag_run = True

    loop.shutdown_asyncgens = shutdown_asyncgens
    return loop


class Reporter(unittest.TestResult):
    """Writes an event when a test starts and when it ends."""

    def __init__(self, emit, factory):
        super().__init__()
        self.emit = emit
        self.factory = factory
        self.current = None

    def startTest(self, test):
        super().startTest(test)
        self.current, self.outcome, self.message = test.id(), "passed", ""
        self.before = self.factory.made, self.factory.ran
        self.emit(event="start", test=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.current = None
        made, ran = self.factory.made - self.before[0], self.factory.ran - self.before[1]
        self.factory.alive[:] = [loop for loop in self.factory.alive if not loop.is_closed()]
        self.emit(event="end", test=test.id(), outcome=self.outcome, made=made, ran=ran, message=self.message)

    def note(self, outcome, error):
        if self.current is None:  # a fixture of a class or module
            self.emit(event="end", test="fixture", outcome=outcome, made=0, ran=0, message=str(error[1])[:300])
        elif self.outcome != "failed":
            self.outcome, self.message = outcome, f"{error[0].__name__}: {error[1]}"[:300]

    def addError(self, test, err):
        self.note("failed", err)

    def addFailure(self, test, err):
        self.note("failed", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note("failed", err)

    def addUnexpectedSuccess(self, test):
        self.outcome, self.message = "failed", "unexpected success"

    def addExpectedFailure(self, test, err):
        self.outcome = "expected failure"

    def addSkip(self, test, reason):
        if self.current is None and isinstance(test, unittest.TestCase):  # 3.12.0 and 3.12.1 skip without a start
            self.startTest(test)
            self.outcome = "skipped"
            self.stopTest(test)
        elif self.current is not None and self.outcome == "passed":
            self.outcome = "skipped"


def main(loop, scope, name, events, decided):
    """Run module ``name`` and report."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignore"
    with open(decided) as file:
        done = set(json.load(file))
    stream = open(events, "a", buffering=1)  # noqa: SIM115  # open until the process ends

    def emit(**event):
        stream.write(json.dumps(event) + "\n")

    factory = Factory(loop)
    factory.watch()
    factory.install()
    import test.support

    test.support.use_resources = []  # as regrtest without -u: no network, nothing large
    test.support.verbose = 0
    if scope == "clock":
        replace_hand_driven_loop(factory)
    tests = []
    # A module that this interpreter does not have, or that is not for this system, has no tests.
    with contextlib.suppress(unittest.SkipTest, ModuleNotFoundError):
        tests = list(flatten(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))))
    repeated = inject(list(dict.fromkeys(map(type, tests))), factory)
    warnings.simplefilter("default")
    unittest.TestSuite(test for test in tests if type(test) not in repeated and test.id() not in done).run(
        Reporter(emit, factory)
    )
    emit(event="done")
    sys.stdout.flush()
    os._exit(0)  # threads and loops that tests leave behind must not hold the exit up


if __name__ == "__main__":
    main(*sys.argv[1:])
