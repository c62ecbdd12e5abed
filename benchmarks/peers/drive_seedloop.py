"""Drive seedloop: `seedloop.check`; its loop keeps asyncio's order, a seed decides entropy and a simulated network."""

from __future__ import annotations

import asyncio

import seedloop
from cases import Case
from driving import Found, Question, drive, short


class Seedloop:
    """It has no strategies."""

    one_search = False

    def find(self, case: Case, question: Question) -> Found:
        worlds: list[seedloop.World] = []

        async def wait(_name: str) -> None:
            await asyncio.sleep(worlds[-1].rng.uniform(0.0, 0.01))

        program = case.whole(wait)

        async def scenario(world: seedloop.World) -> None:
            worlds[:] = [world]
            await program()

        first = question.seed * question.cap
        result = seedloop.check(scenario, seeds=range(first, first + question.cap), on_failure="return")
        return Found(result.checked, "" if result.error is None else short(result.error))


if __name__ == "__main__":
    drive(Seedloop())
