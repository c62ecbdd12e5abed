"""Drive harness: what `harness search` and `harness prove` run, on the same programs."""

from __future__ import annotations

from dataclasses import replace

from cases import Case
from driving import Found, Proof, Question, drive, short

import harness
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import clock_patch
from harness.model.rung import Rung
from harness.search.portfolio import BudgetSpent, Trial
from harness.search.prove import prove
from harness.search.target import Target


class Harness:
    """strategy: a scheduler, and after a slash a rung; the default is the portfolio up to relaxed."""

    one_search = False

    def find(self, case: Case, question: Question) -> Found:
        """Search without shrinking: the others' shrinking is not counted either."""
        scheduler, target = self._target(case, question)
        phases = make_phases(scheduler or "portfolio", rung=target.rung, seed=question.seed)
        with target.open() as runner:
            trial = Trial(runner, budget=question.cap)
            try:
                for phase in phases:
                    if trial.left > 0 and phase.look(trial) is not None:
                        break
            except BudgetSpent:
                pass
        failing = trial.first_failing
        if failing is None:
            return Found(trial.executions, ended="exhausted" if trial.left > 0 else "cap")
        return Found(trial.found_after, short(f"{failing.ending} [rung {failing.rung.label}]"))

    def prove(self, case: Case, question: Question) -> Proof:
        _, target = self._target(case, question)
        # As `harness prove` does: checkpoints carry the time, and states that differ in it would not be equal.
        target = replace(target, patches=(clock_patch("increasing"),))
        proof = prove(target, budget=question.cap, seconds=question.seconds, to_first=True)
        failure = str(proof.outcomes[0].violation.message) if proof.outcomes else ""
        return Proof(proof.verdict, proof.executions, f"rung {target.rung.label}", short(failure))

    def _target(self, case: Case, question: Question) -> tuple[str, Target]:
        scheduler, _, label = question.strategy.partition("/")
        rung = next(rung for rung in Rung if rung.label == (label or "relaxed"))
        return scheduler, Target("peer", case.whole(harness.point), rung=rung, turn_limit=20_000)


if __name__ == "__main__":
    drive(Harness())
