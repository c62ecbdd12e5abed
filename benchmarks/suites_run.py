"""Runs somebody else's pytest suite in child processes and survives its hangs and crashes.

Owns the child process and its deadline; must not know which loop is under test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one test.

    outcome: pass, fail, error, skip, xfail, hang, crash or notrun. runs: how often a loop of the injected factory ran.
    """

    outcome: str
    runs: int = 0
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Real seconds for one test, for the start of a child, and for a whole suite; and how many hangs are enough."""

    test_s: float = 40
    start_s: float = 120
    suite_s: float = 900
    hangs: int = 15


class Child:
    """One pytest process and the events that it wrote so far."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, skip: Iterable[str]
    ) -> None:
        self.room = tempfile.TemporaryDirectory(prefix="suites-")
        room = Path(self.room.name)
        self.events, skip_file = room / "events", room / "skip"
        self.events.touch()
        skip_file.write_text(json.dumps(sorted(skip)))
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                env={**env, "SUITES_EVENTS": str(self.events), "SUITES_SKIP": str(skip_file), "TMPDIR": str(room)},
                cwd=cwd,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.reader = self.events.open()
        self.partial = ""
        self.current: str | None = None
        self.moved = time.monotonic()
        self.done = False
        self.collected: list[str] = []
        self.results: dict[str, Result] = {}

    def read(self) -> None:
        """Take in what the child wrote since the last time."""
        *lines, self.partial = (self.partial + self.reader.read()).split("\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        self.moved = time.monotonic()
        kind = event["event"]
        if kind == "start":
            self.current = event["test"]
        elif kind == "collected":
            self.collected = event["tests"]
        elif kind == "done":
            self.done = True
        else:
            self.current = None
            self.results[event["test"]] = Result(event["outcome"], event["runs"], event["message"], event["seconds"])

    def wait(self, limits: Limits, deadline: float) -> bool:
        """Wait for the end; return whether the child had to be killed."""
        killed = False
        while self.process.poll() is None and not killed:
            time.sleep(0.05)
            self.read()
            limit = limits.test_s if self.current is not None or self.done else limits.start_s
            if time.monotonic() > min(deadline, self.moved + limit):
                killed = True
        # also ends what the suite itself started and left
        for _ in range(2):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                break
        self.process.wait()
        self.read()
        self.reader.close()
        self.room.cleanup()
        return killed


def run_tests(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    limits: Limits,
    skip: Iterable[str] = (),
) -> dict[str, Result]:
    """Run a suite to its end, in as many children as its hangs and crashes take.

    skip: tests that are left out and not reported.
    """
    skip = set(skip)
    results: dict[str, Result] = {}
    collected: list[str] = []
    deadline = time.monotonic() + limits.suite_s
    hangs = barren = 0
    why = ""
    while not why:
        child = Child(command, env, cwd, log, skip | set(results))
        killed = child.wait(limits, deadline)
        collected = collected or child.collected
        results.update(child.results)
        barren = 0 if child.results or child.current else barren + 1
        if child.done:
            break
        if child.current is not None:
            hangs += 1
            code = child.process.returncode
            message = f"killed after {limits.test_s:g} s" if killed else f"the child ended with {code}"
            results[child.current] = Result("hang" if killed else "crash", -1, message)
        if time.monotonic() > deadline:
            why = f"the suite took longer than {limits.suite_s:g} s"
        elif hangs > limits.hangs:
            why = f"{hangs} hangs and crashes"
        elif barren >= 2:
            why = "the child made no progress"
    for test in collected:
        if test not in skip:
            results.setdefault(test, Result("notrun", -1, why))
    return results
