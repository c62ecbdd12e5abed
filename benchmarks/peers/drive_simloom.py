"""Drive simloom: `simloom.explore` and `simloom.explore_systematic`, as `@simloom.test` calls them."""

from __future__ import annotations

import asyncio

import simloom
from cases import Case
from driving import Found, Proof, Question, drive, short


async def wait(_name: str) -> None:
    """Take a time that is drawn from the tape."""
    await asyncio.sleep(simloom.draw("wait", 10) / 1000)


def failure_of(failures: list[simloom.Failure]) -> str:
    """Return what failed first, or "" for nothing."""
    return short(f"{failures[0].error}: {failures[0].message}") if failures else ""


class Simloom:
    """strategy: a scheduler of `simloom.explore`, or a number of delays for a proof."""

    one_search = False

    def find(self, case: Case, question: Question) -> Found:
        found = simloom.explore(
            case.whole(wait),
            runs=question.cap,
            start_seed=question.seed * question.cap,
            scheduler=question.strategy or "random",
            virtual_time=True,
            seed_randomness=True,
        )
        return Found(found.runs, failure_of(found.failures))

    def prove(self, case: Case, question: Question) -> Proof:
        delays = question.strategy
        result = simloom.explore_systematic(
            case.whole(wait), max_delays=int(delays or 10**6), max_schedules=question.cap, virtual_time=True
        )
        verdict = "violation" if result.failed else ("proved" if result.proven_correct else "unfinished")
        claim = f"within {delays} delays" if delays else "any number of delays"
        return Proof(verdict, result.schedules, claim, failure_of(result.failures))


if __name__ == "__main__":
    drive(Simloom())
