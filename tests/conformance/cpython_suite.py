"""CPython's own asyncio tests on the stock loop and on ours, in the same session, and where they differ.

Owns the processes, the comparison and the list of known differences; must not know how a loop is injected.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The interpreters that the project supports.
VERSIONS = ("3.11", "3.12", "3.13")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DIFFERS = HERE / "differs.txt"

_NAMES = """
    base_events buffered_proto context eager_task_factory events free_threading futures futures2 graph locks pep492
    protocols queues runners selector_events sendfile server sock_lowlevel ssl sslproto staggered streams subprocess
    taskgroups tasks threads timeouts tools transports unix_events waitfor
"""
MODULES = (
    *(f"test.test_asyncio.test_{name}" for name in _NAMES.split()),
    "test.test_asyncgen",
    "test.test_contextlib_async",
    "test.test_unittest.test_async_case",
    "test.test_async_case",  # its name up to 3.11
)
# Modules with tests that run on the hand-driven loop of test.test_asyncio.utils.
CLOCK_MODULES = tuple(f"test.test_asyncio.test_{name}" for name in ("base_events", "futures", "tasks", "unix_events"))
# Seconds for one test, and for a process to begin its first one; what takes longer hangs.
TEST_LIMIT_S = 60.0
START_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Result:
    """How one test ended. made, ran: loops of the factory that it made, and runs of such loops that it began."""

    outcome: str
    made: int = 0
    ran: int = 0
    message: str = ""


@dataclass(slots=True)
class Comparison:
    """The tests of one interpreter on both loops, by ``scope`` and test.

    invariant: both dicts were filled in one session, with the same interpreter.
    """

    python: str
    stock: dict[str, Result] = field(default_factory=dict)
    ours: dict[str, Result] = field(default_factory=dict)

    def counted(self, scope: str = "") -> list[str]:
        """Return the tests that make a loop and pass on the stock loop, each in one scope only."""
        found = [name for name, result in self.stock.items() if result.outcome == "passed" and result.made]
        in_loop_scope = {name.removeprefix("loop ") for name in found if name.startswith("loop ")}
        return [
            name
            for name in found
            if name.startswith(scope) and not (name.startswith("clock ") and name[len("clock ") :] in in_loop_scope)
        ]

    def passed(self, scope: str = "") -> list[str]:
        """Return those of them that pass on ours."""
        return [name for name in self.counted(scope) if name in self.ours and self.ours[name].outcome == "passed"]

    def ran(self, scope: str = "") -> int:
        """Return in how many of the tests that pass on ours a controlled loop really ran."""
        return sum(self.ours[name].ran > 0 for name in self.passed(scope))

    def differing(self) -> dict[str, str]:
        """Return every test that passes on the stock loop and not on ours, with what came of it."""
        found = {}
        for name, result in self.stock.items():
            mine = self.ours.get(name, Result("not run"))
            if result.outcome == "passed" and mine.outcome != "passed":
                found[name] = f"{mine.outcome}: {mine.message}"
        return found


def find_interpreter(version: str) -> str | None:
    """Return the path of a Python ``version``, such as "3.12", with its own tests installed; None for none."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    command = [sys.executable, str(ROOT / "scripts" / "find_pythons.py"), version]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    has_tests = [path, "-c", "import test.test_asyncio"]
    return path if path and subprocess.run(has_tests, capture_output=True).returncode == 0 else None


def compare(
    modules: Iterable[str], *, python: str = sys.executable, scopes: Iterable[str] = ("loop", "clock")
) -> Comparison:
    """Run those of ``modules`` that ``python`` has on both loops, one process per module, loop and scope.

    The two loops run side by side. A module with a difference is run again, so that what a busy machine does
    to one of them is not counted: the second try holds.
    """
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    comparison = Comparison(version)
    for scope in scopes:
        for module in modules:
            if scope == "clock" and module not in CLOCK_MODULES:
                continue
            for _ in range(2):
                found = run_both(module, scope=scope, python=python)
                comparison.stock.update(found.stock)
                comparison.ours.update(found.ours)
                if not found.differing():
                    break
    return comparison


def run_both(module: str, *, scope: str, python: str) -> Comparison:
    """Run one module on both loops at the same time."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(run_module, module, loop=loop, scope=scope, python=python) for loop in ("stock", "ours")]
        stock, ours = ({f"{scope} {test}": result for test, result in job.result().items()} for job in jobs)
    return Comparison(python, stock, ours)


def run_module(module: str, *, loop: str, scope: str, python: str) -> dict[str, Result]:
    """Run one module to its end; a test that hangs or kills its process is noted and left out in the next try."""
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        for attempt in range(50):
            events, decided = Path(folder, f"events-{attempt}"), Path(folder, "decided")
            events.touch()
            decided.write_text(json.dumps(sorted(results)))
            command = [python, str(HERE / "child.py"), loop, scope, module, str(events), str(decided)]
            current, ended = run_child(command, events, results, folder=folder)
            if ended == "done":
                return results
            if not current:
                raise RuntimeError(f"{module} on the {loop} loop of {python} ended before its first test: {ended}")
            results[current] = Result(ended)
    raise RuntimeError(f"{module} on the {loop} loop of {python} hangs or crashes again and again")


def run_child(command: list[str], events: Path, results: dict[str, Result], *, folder: str) -> tuple[str, str]:
    """Run a child and collect its results; return the test that was running and how the child ended."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "TMPDIR": folder}
    log = Path(folder, "log")
    with log.open("w") as output:
        child = subprocess.Popen(
            command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    current, since, done = "", time.monotonic(), False
    with events.open() as stream:
        lines = whole_lines(stream)
        try:
            while True:
                over = child.poll() is not None  # asked first: what it wrote before its end is read below
                for line in lines:
                    if not line:
                        break
                    event = json.loads(line)
                    since = time.monotonic()
                    if event["event"] == "start":
                        current = event["test"]
                    elif event["event"] == "done":
                        done = True
                    else:
                        current = ""
                        fields = ("outcome", "made", "ran", "message")
                        results[event["test"]] = Result(*(event[name] for name in fields))
                if over:
                    return current, "done" if done else f"crashed: {log.read_text()[-500:]}"
                if time.monotonic() - since > (TEST_LIMIT_S if current else START_LIMIT_S):
                    return current, "hung"
                time.sleep(0.02)
        finally:
            end_group(child)


def whole_lines(stream: Any) -> Iterator[str]:
    """Yield the lines of a file that grows, and "" whenever there is none yet."""
    rest = ""
    while True:
        text = stream.read()
        *lines, rest = (rest + text).split("\n")
        yield from lines
        yield ""


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a child and the processes that its tests started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def known_differences(path: Path = DIFFERS) -> dict[str, tuple[str, str]]:
    """Read the list: ``scope test | category | reason`` per line, and # for comments."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, category, reason = (part.strip() for part in line.split("|"))
            found[name] = category, reason
    return found
