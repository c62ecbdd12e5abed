"""Drive simloop: `simloop.explore`; it has no exhaustive search."""

from __future__ import annotations

import asyncio

import simloop
from cases import Case
from driving import Found, Question, drive, short


async def wait(_name: str) -> None:
    """Take a time that is drawn from the seed."""
    await asyncio.sleep(simloop.sim.random.uniform(0.0, 0.01))


class Simloop:
    """strategy: a policy of `simloop.explore`."""

    one_search = False

    def find(self, case: Case, question: Question) -> Found:
        first = 1 + question.seed * question.cap  # seed 0 sizes the horizon of its PCT
        seeds = range(first, first + question.cap)
        report = simloop.explore(case.whole(wait), seeds, policy=question.strategy or "random")
        return Found(question.cap) if report is None else Found(report.seeds_passed + 1, short(report.exception))


if __name__ == "__main__":
    drive(Simloop())
