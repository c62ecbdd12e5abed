"""Drive frontrun: `frontrun.explore` over a program's parts; a program that is not made of parts is one worker.

frontrun schedules the workers that it is given and no task that these create. What its workers share has to be
attributes: see attributes.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from attributes import load_with_attributes

HERE = Path(__file__).resolve().parent
load_with_attributes("benchmarks.programs", HERE.parent / "programs.py")
load_with_attributes("theirs", HERE / "theirs.py")
load_with_attributes("cases", HERE / "cases.py")

import frontrun  # noqa: E402
from cases import Case, Parts, nothing  # noqa: E402
from driving import Found, Proof, Question, drive, short  # noqa: E402


async def wait(_name: str) -> None:
    """Take 1 ms: with its explored clock, others may come first or later."""
    await asyncio.sleep(0.001)


class State:
    """What the workers of one execution share."""

    def __init__(self, parts: Parts) -> None:
        self.coroutines, self.check = parts


def worker(index: int) -> Callable[[State], Any]:
    """Return the worker that runs one of the coroutines."""

    async def work(state: State) -> None:
        await state.coroutines[index]

    return work


class Frontrun:
    """strategy: the bound on preemptions, 2 by default as frontrun's own; "none" for no bound."""

    one_search = True

    def find(self, case: Case, question: Question) -> Found:
        result = self._explore(case, question)
        if result.property_holds is False:
            return Found(result.num_explored, short(result.explanation))
        return Found(result.num_explored, ended="inconclusive" if result.property_holds is None else self.ended)

    def prove(self, case: Case, question: Question) -> Proof:
        result = self._explore(case, question)
        if result.property_holds is False:
            return Proof("violation", result.num_explored, failure=short(result.explanation))
        if result.property_holds is None:
            return Proof("unfinished", result.num_explored, "inconclusive")
        return Proof("proved" if self.ended == "exhausted" else "unfinished", result.num_explored, "property_holds")

    def _explore(self, case: Case, question: Question) -> Any:
        parts = case.parts if case.remote_parts is None else partial(case.remote_parts, wait)
        if parts is None:
            program = case.whole(wait)

            async def whole(_state: State) -> None:
                await program()

            def setup() -> State:
                return State(([], nothing))

            workers = [whole]
        else:
            make = parts

            def setup() -> State:
                return State(make())

            first = setup()
            for coroutine in first.coroutines:
                coroutine.close()
            workers = [worker(index) for index in range(len(first.coroutines))]
        loop = asyncio.new_event_loop()
        began = loop.time()
        result = loop.run_until_complete(
            frontrun.explore(
                setup=setup,
                workers=workers,
                invariant=lambda state: state.check() is None,
                clock="explored" if case.remote is not None or case.remote_parts is not None else "virtual",
                preemption_bound=None if question.strategy == "none" else int(question.strategy or 2),
                max_executions=question.cap,
                timeout_per_run=max(5.0, question.seconds),
                total_timeout=question.seconds,
                reproduce_on_failure=0,
            )
        )
        over = loop.time() - began >= question.seconds
        loop.close()
        self.ended = "time" if over else ("cap" if result.num_explored >= question.cap else "exhausted")
        return result


if __name__ == "__main__":
    drive(Frontrun())
