"""Drive detangle: `detangle.explore`, with shrinking and its database off, since neither is counted."""

from __future__ import annotations

import asyncio

import detangle
from cases import Case
from driving import Found, Proof, Question, drive, short

OPTIONS = {"": {}, "in-order": {"reorder": False}, "late": {"timer_jitter": 0.01}}


async def wait(_name: str) -> None:
    """Take a time that the strategy chooses."""
    await asyncio.sleep(detangle.randint(0, 9) / 1000)


class Detangle:
    """strategy: of `detangle.explore`, or a number of delays for a proof; after a slash, one of OPTIONS."""

    one_search = False

    def find(self, case: Case, question: Question) -> Found:
        name, _, option = question.strategy.partition("/")
        return self._explore(case, question, option, strategy=name or "auto", seed=question.seed)[0]

    def prove(self, case: Case, question: Question) -> Proof:
        delays, _, option = question.strategy.partition("/")
        dfs = detangle.DFS(max_delays=int(delays or 10**6))
        found, exhausted = self._explore(case, question, option, strategy=dfs)
        claim = f"within {delays} delays" if delays else "any number of delays"
        verdict = "violation" if found.failure else ("proved" if exhausted else "unfinished")
        return Proof(verdict, found.executions, claim, found.failure)

    def _explore(self, case: Case, question: Question, option: str, **how: object) -> tuple[Found, bool]:
        try:
            stats = detangle.explore(
                case.whole(wait), runs=question.cap, shrink=False, database=False, **how, **OPTIONS[option]
            )
        except detangle.BugFound as found:
            return Found(found.report.runs, short(found.report.failure.message)), False
        return Found(stats.runs, ended="exhausted" if stats.exhausted else "cap"), stats.exhausted


if __name__ == "__main__":
    drive(Detangle())
