"""The search of one scenario on several storages, as ``harness search`` runs it.

Owns the order of storages, stored failures and explanations; must not print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.adapters.explaining import title_of
from harness.adapters.portfolio import make_parts
from harness.adapters.recipes import ScenarioRecipe
from harness.commands.stored import where_is
from harness.search.explain import described, explain_counterexample
from harness.search.parts import Elsewhere, Part, search_parts
from harness.search.pool import Answers, Pool
from harness.search.portfolio import Progress
from harness.search.result import SearchResult
from harness.search.store import Store, Stored, Warn
from harness.search.target import Target


@dataclass(frozen=True, slots=True)
class Searching:
    """How to search. budget: executions per storage. database: a directory, or None. progress: shows it, per target.

    warn: takes the line about a target that others could not finish.
    """

    scheduler: str
    budget: int
    seed: int
    database: Path | None
    failures: Store | None
    progress: Callable[[Target], AbstractContextManager[Progress | None]]
    warn: Warn

    def parts(self, target: Target) -> list[Part]:
        """Return the parts of a search of ``target``; raises UsageError for a scheduler that cannot be used."""
        key = f"{target.name} {sorted(target.setup.items())} {target.rung.label}"
        parts = make_parts(self.scheduler, budget=self.budget, seed=self.seed, key=key, database=self.database)
        parts[0].phases.make(target.rung)
        return parts

    def search(
        self, recipes: Sequence[ScenarioRecipe], *, pool: Pool | None, said: list[str]
    ) -> Iterator[tuple[Target, SearchResult]]:
        """Yield each target with its result, in order; others search on in ``pool`` meanwhile. Ends when interrupted.

        said: what the store of failures has to say is added to it.
        """
        targets = [recipe.target() for recipe in recipes]
        parts = [self.parts(target) for target in targets]  # all of them: a wrong name is told before anything runs
        answers = None if pool is None else Answers(pool)
        others = [
            None if answers is None else Elsewhere(answers, answers.submit(recipe.anywhere(), units))
            for recipe, units in zip(recipes, parts, strict=True)
        ]
        for recipe, target, units, elsewhere in zip(recipes, targets, parts, others, strict=True):
            stored = None
            if self.failures is not None:
                stored = Stored(self.failures, target, where=where_is(recipe.scenario()))
            first = [] if stored is None else [stored]
            with self.progress(target) as tick:
                result = search_parts(target, units, first=first, elsewhere=elsewhere, progress=tick)
            if stored is not None:
                stored.close(result)  # before it is explained, which may take a while and be interrupted
                said += stored.lines()
            if result.broken:
                self.warn(f"{target.name} on {recipe.storage}: {result.broken}")
            yield target, explained(target, result)
            if result.interrupted:
                return


def explained(target: Target, result: SearchResult) -> SearchResult:
    """Return ``result`` with the explanation of its counterexample, if it has one."""
    found = result.counterexample
    if found is None:
        return result
    title = title_of(target)
    try:
        return replace(result, counterexample=explain_counterexample(target, found, title=title))
    except KeyboardInterrupt:  # the finding is worth more than its explanation
        without = described(target, found, title=title, unexplained="interrupted")
        return replace(result, counterexample=replace(found, explanation=without))
