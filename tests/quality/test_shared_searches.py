"""Searches that several processes share: the result does not depend on how many there are."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.adapters.portfolio import PART, PartPhases, make_parts
from harness.adapters.recipes import ScenarioRecipe
from harness.search.parts import Elsewhere, Part, search_parts
from harness.search.pool import Answers
from harness.search.portfolio import search
from harness.search.processes import Processes
from tests.data.shared_units import Recipe

ROOT = Path(__file__).parents[2]
BUGGY = ScenarioRecipe("scenarios/cancel_in_save.py", "cancel_in_save", "memory")


def parts_of(scheduler, *, parts=6, budget=20, seed=0):
    """Return parts that are smaller than those of a user."""
    return [Part(PartPhases(scheduler, seed + number), budget) for number in range(parts)]


def facts(result):
    """Return all that a result states, but for how long it took."""
    found = result.counterexample
    token = "" if found is None else found.execution.schedule.token()
    shown = None if found is None else (found.violation, found.found_after, found.found_by, found.replays, found.text)
    return {
        **dataclasses.asdict(dataclasses.replace(result, seconds=0.0, counterexample=None)),
        "found": (token, shown),
    }


def shared_search(recipe, parts, jobs):
    """Return the facts of a search by several processes."""
    with Processes(jobs) as pool:
        answers = Answers(pool)
        elsewhere = Elsewhere(answers, answers.submit(recipe, parts))
        return facts(search_parts(recipe.target(), parts, elsewhere=elsewhere))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "parts", "verdict"),
    [
        (Recipe("clean"), parts_of("portfolio"), "none-found"),
        (Recipe("rare"), parts_of("uniform", budget=40), "violation"),
        (Recipe("rare"), parts_of("portfolio", seed=18, budget=40), "violation"),
        (BUGGY, make_parts(budget=60), "violation"),
    ],
    ids=lambda value: str(getattr(value, "name", "")),
)
def test_a_shared_search_is_the_same(recipe, parts, verdict):
    """Verdict, counterexample, its token, and the executions that it took."""
    alone = facts(search_parts(recipe.target(), parts))
    assert alone["verdict"] == verdict
    for jobs in (2, 3):
        assert shared_search(recipe, parts, jobs) == alone


@pytest.mark.slow
def test_the_first_part_that_fails_decides():
    """What a later part found sooner is dropped, and does not count."""
    recipe, parts = Recipe("rare"), parts_of("uniform", budget=40, parts=8)
    alone = [search_parts(recipe.target(), [part]).verdict for part in parts]
    assert alone.index("violation") > 0
    assert alone.count("violation") > 1
    token, shown = shared_search(recipe, parts, 3)["found"]
    first = search_parts(recipe.target(), [parts[alone.index("violation")]]).counterexample
    assert token == first.execution.schedule.token()
    assert shown[1] == 40 * alone.index("violation") + first.found_after


@pytest.mark.slow
def test_a_search_without_workers_says_so():
    """What they had found is told, and nothing is taken for searched; another search cannot be had either."""
    command = [sys.executable, "-m", "tests.data.without_workers", "search"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    verdict, (broken,), raised = json.loads(done.stdout)
    assert verdict == "unfinished"
    assert "worker processes died" in broken
    assert len(raised) == 3
    assert all("worker process" in message for message in raised)


def test_a_search_of_one_part_is_a_search():
    """Up to its size nothing is different from a search of phases."""
    target = Recipe("lost_update").target()
    parts = make_parts(budget=PART)
    assert facts(search_parts(target, parts)) == facts(
        search(target, phases=parts[0].phases.make(target.rung), budget=PART)
    )


def test_parts_share_the_budget_and_differ_in_their_seeds():
    """Those of a scheduler that draws nothing would be the same search again."""
    parts = make_parts("uniform", budget=2 * PART + 7, seed=3)
    assert [(part.budget, part.phases.seed) for part in parts] == [(PART, 3), (PART, 4), (7, 5)]
    for systematic in ("sweep", "delay", "delay-2"):
        assert [part.budget for part in make_parts(systematic, budget=2 * PART)] == [2 * PART]
