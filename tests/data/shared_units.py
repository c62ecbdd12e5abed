"""Units and targets of the tests of pools: plain values that every process can make.

Owns nothing that a user would write; must not know a pool.
"""

import asyncio
import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.model.errors import UsageError
from harness.model.rung import Rung
from harness.search.target import Target


async def clean():
    """Two tasks that wait twice each and share nothing."""

    async def work(name):
        await harness.point(f"{name} one")
        await harness.point(f"{name} two")

    await asyncio.gather(*(work(name) for name in "ab"))


async def lost_update():
    """A counter that is read before a wait and written after it, by three tasks."""
    counter = {"value": 0}

    async def add(name):
        before = counter["value"]
        await harness.point(name)
        counter["value"] = before + 1

    async def later():
        await harness.point("later")
        await add("late")

    await asyncio.gather(add("one"), add("two"), later())
    assert counter["value"] == 3, f"the counter is {counter['value']}"


async def rare():
    """Fails when five waits end in one order out of 120."""
    order = []

    async def tell(name):
        await harness.point(name)
        order.append(name)

    await asyncio.gather(*(tell(name) for name in "abcde"))
    assert "".join(order) != "ebdac"


PROGRAMS = {program.__name__: program for program in (clean, lost_update, rare)}


@dataclass(frozen=True)
class Recipe:
    """A program of this file."""

    name: str
    rung: str = "latency"

    def target(self):
        if self.name not in PROGRAMS:
            raise UsageError(f"no program {self.name!r}")
        return Target(self.name, PROGRAMS[self.name], rung=Rung.parse(self.rung))


@dataclass(frozen=True)
class Square:
    """Returns the square and the process; dies on the way as often as ``deaths`` says, or hangs in C."""

    number: int
    deaths: int = 0
    marks: str = ""
    hangs: bool = False
    slow: bool = False

    def run(self, bench):
        if self.marks and len(list(Path(self.marks).iterdir())) < self.deaths:
            (Path(self.marks) / f"{time.monotonic_ns()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.hangs:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # in C, for minutes, in which no signal is handled
        if self.slow:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                bench.runner.run(None)
        return self.number**2, os.getpid()
