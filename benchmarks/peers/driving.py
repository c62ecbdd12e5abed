"""What all drivers share: the command line, the time limit and the lines that they print.

Owns the protocol between benchmarks/peers.py and a driver; must not know a tool.

    python drive_TOOL.py find|prove|speed PROGRAM [--strategy NAME] [--seeds N] [--cap N] [--seconds S]

Each answer is one line of JSON on standard output, as soon as it is known. When the time is over, the number of
executions that the tool has begun is the last answer.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from cases import CASES, Case, Program

# frontrun ends a search at a limit of its own, which is more exact than counting from outside.
ALARM_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Found:
    """One search. executions: the number of the first that failed, or all of them when none did.

    failure: what failed, or "". ended: why there is none: cap, time, exhausted, or inconclusive.
    """

    executions: int
    failure: str = ""
    ended: str = "cap"


@dataclass(frozen=True, slots=True)
class Proof:
    """One attempt at a proof. verdict: proved, violation or unfinished; claim: what the tool says was covered."""

    verdict: str
    executions: int
    claim: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """How to search. seconds: what a tool with a limit of its own may take."""

    strategy: str
    seed: int
    cap: int
    seconds: float


class Driver(Protocol):
    """How one tool is driven. one_search: its search does not depend on a seed, so one is enough."""

    one_search: bool

    def find(self, case: Case, question: Question) -> Found: ...
    def prove(self, case: Case, question: Question) -> Proof: ...


class Counter:
    """Counts executions from outside, so that a search which is ended has a number all the same."""

    begun = 0

    def counted(self, case: Case) -> Case:
        """Return the case; the counter is not in its coroutines, where it would be a part of their state."""

        def program(make: Program) -> Program:
            def begin() -> Any:
                self.begun += 1
                return make()

            return begin

        if case.remote is not None or case.remote_parts is not None:
            return replace(case, remote=lambda wait: program(case.whole(wait)))
        return replace(case, program=program(case.whole(_no_wait)))


async def _no_wait(_name: str) -> None:
    raise AssertionError("this case waits for nothing outside")


def short(error: BaseException | str) -> str:
    """Return an error in at most 160 characters of one line."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:160]


def say(**answer: Any) -> None:
    """Print one answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def drive(driver: Any) -> None:
    """Answer one question about one program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["find", "prove", "speed"])
    parser.add_argument("program", choices=list(CASES))
    parser.add_argument("--strategy", default="")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cap", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    CASES[options.program].whole(_no_wait)  # imports what it needs
    gc.collect()
    gc.freeze()  # for every tool: some collect after each execution, and would scan all imported modules each time
    tasks: dict[str, Callable[[Any, Case, Any], None]] = {"find": _find, "prove": _prove, "speed": _speed}
    tasks[options.task](driver, CASES[options.program], options)


def _at_the_limit(seconds: float, answer: Callable[[], dict[str, Any]]) -> None:
    """Give ``answer`` and end the process when ``seconds`` and a little are over, whatever the tool is doing."""

    def end(*_: object) -> None:
        say(**answer())
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds + ALARM_GRACE_S)


def _find(driver: Driver, case: Case, options: Any) -> None:
    counter, began, seed = Counter(), time.perf_counter(), 0
    searches = 1 if driver.one_search else options.seeds
    _at_the_limit(options.seconds, lambda: {"seed": seed, "of": searches, **asdict(Found(counter.begun, ended="time"))})
    for seed in range(searches):
        left = options.seconds - (time.perf_counter() - began)
        if left <= 0:
            return
        counter.begun = 0
        question = Question(options.strategy, seed, options.cap, left)
        say(seed=seed, of=searches, **asdict(driver.find(counter.counted(case), question)))


def _prove(driver: Driver, case: Case, options: Any) -> None:
    counter, began = Counter(), time.perf_counter()
    _at_the_limit(options.seconds, lambda: {**asdict(Proof("unfinished", counter.begun)), "seconds": options.seconds})
    question = Question(options.strategy, 0, options.cap, options.seconds)
    proof = driver.prove(counter.counted(case), question)
    say(**asdict(proof), seconds=round(time.perf_counter() - began, 4))


def _speed(driver: Driver, case: Case, options: Any) -> None:
    """Double the number of executions until a search of them takes a third of the time, then take the best of three."""
    number, rates = 25, []
    while len(rates) < 3:
        question = Question(options.strategy, len(rates) + 1, number, 2 * options.seconds)
        began = time.perf_counter()
        found = driver.find(case, question)
        seconds = time.perf_counter() - began
        if found.failure:
            say(failure=found.failure)
            return
        if seconds < options.seconds / 3 and found.executions == number:
            number *= 2
        else:
            rates.append(found.executions / seconds)
    say(per_s=round(max(rates), 1), executions=number)
