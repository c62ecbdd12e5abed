"""Proofs that several processes share: what is found does not depend on how many there are."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.adapters.recipes import ScenarioRecipe
from harness.search import ahead
from harness.search.pool import Shared
from harness.search.processes import Processes
from harness.search.prove import prove
from tests.data.shared_units import Recipe

ROOT = Path(__file__).parents[2]
FAULTS = ScenarioRecipe("scenarios/issue_9615.py", "issue_9615", "memory", shapes=False, faults=("cancel",))


def facts(proof):
    """Return all that a proof states, but for how long it took; executions by their tokens."""
    outcomes = [(found.found_after, found.violation, found.execution.schedule.token()) for found in proof.outcomes]
    return {**dataclasses.asdict(dataclasses.replace(proof, seconds=0.0, outcomes=())), "outcomes": outcomes}


def shared_proof(recipe, jobs, *, forked=None, **options):
    """Return the facts of a proof by several processes."""
    with Processes(jobs, forked=forked) as pool:
        return facts(prove(recipe.target(), shared=Shared(pool, recipe), **options))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Let others work from the first execution on, as in a search that takes long."""
    monkeypatch.setattr(ahead, "ALONE_S", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "options", "verdict"),
    [
        (Recipe("clean"), {}, "proved"),
        (Recipe("lost_update"), {}, "violation"),
        (Recipe("lost_update"), {"mode": "certain"}, "violation"),
        (Recipe("rare"), {"budget": 150}, "unfinished"),
        (Recipe("rare", rung="relaxed"), {"bound": 1}, "unfinished"),
        (FAULTS, {"budget": 60}, "unfinished"),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_a_shared_proof_is_the_same(recipe, options, verdict):
    """Verdict, outcomes, schedules that show them, executions, states, what was pruned and what is left."""
    alone = facts(prove(recipe.target(), **options))
    assert alone["verdict"] == verdict
    without = {"estimate"}  # its probes depend on the time
    for jobs in (2, 3):
        shared = shared_proof(recipe, jobs, **options)
        assert {key: shared[key] for key in shared.keys() - without} == {
            key: alone[key] for key in alone.keys() - without
        }


@pytest.mark.slow
def test_new_interpreters_find_the_same():
    """Which share neither addresses nor a hash seed with this process."""
    recipe = Recipe("lost_update")
    assert shared_proof(recipe, 2, forked=False) == facts(prove(recipe.target()))


STATES = """
import hashlib, logging
from harness.adapters.recipes import ScenarioRecipe
from harness.search.exhaustive import Exploration
logging.getLogger().addHandler(logging.NullHandler())
for storage in ("memory", "file"):
    target = ScenarioRecipe("scenarios/issue_9615.py", "issue_9615", storage, shapes=False).target()
    exploration = Exploration(target, mode="fingerprint")
    with target.open() as runner:
        exploration.run(runner, budget=10, until_s=float("inf"))
    print(storage, exploration.states, hashlib.md5(b"".join(exploration._states)).hexdigest())
"""


@pytest.mark.slow
def test_states_are_read_alike_in_every_process():
    """With any hash seed, wherever objects lie, and in whatever folder a storage is."""
    said = [
        subprocess.run(
            [sys.executable, "-c", STATES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].startswith("memory ")


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing():
    """In the middle of a proof: nothing is lost and nothing is counted twice."""
    recipe = Recipe("rare")
    with Processes(2) as pool:
        victims = [pool._workers[0].pid]

        def kill(executions, _):
            if executions > 50 and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        shared = facts(prove(recipe.target(), shared=Shared(pool, recipe), progress=kill, budget=200))
    assert not victims
    alone = facts(prove(recipe.target(), budget=200))
    assert {**shared, "estimate": None} == {**alone, "estimate": None}


@pytest.mark.slow
def test_a_proof_without_workers_says_so():
    """What was found is not lost, and nothing is certified."""
    command = [sys.executable, "-m", "tests.data.without_workers", "proof"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    verdict, reasons = json.loads(done.stdout)
    assert any("worker processes died" in reason for reason in reasons)
    assert verdict in ("unfinished", "violation")
