"""A Dask cluster as a pool: the same results as alone, whatever happens to its workers."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.adapters.dask.cluster import Cluster
from harness.adapters.dask.places import Identity, run_unit
from harness.model.errors import UsageError, WorkerError
from harness.search.parts import Elsewhere, search_parts
from harness.search.pool import Answers, Shared
from harness.search.prove import prove
from tests.data.shared_units import Recipe, Square
from tests.quality.test_shared_proofs import facts as facts_of_proof
from tests.quality.test_shared_searches import facts, parts_of

ROOT = Path(__file__).parents[3]
pytest.importorskip("distributed")


def started(**environment):
    """Start a cluster; return its process and what it said."""
    process = subprocess.Popen(
        [sys.executable, "tests/data/local_cluster.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return process, json.loads(process.stdout.readline())


def stop(process):
    """Let a cluster end."""
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process with one thread; the address and the processes."""
    process, said = started()
    yield said
    stop(process)


def processes_of(text):
    """Return the command lines of all processes that contain ``text``."""
    lines = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            lines.append(line)
    return lines


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing(cluster):
    """In the middle of a proof: what it had begun is begun again, nothing is lost and nothing is counted twice."""
    recipe = Recipe("rare")
    victims = [cluster["pids"][0]]

    def kill(executions, _):
        if executions > 40 and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    with Cluster(cluster["address"]) as pool:
        assert pool.jobs == 2
        shared = facts_of_proof(prove(recipe.target(), shared=Shared(pool, recipe), progress=kill, budget=150))
    assert not victims
    alone = facts_of_proof(prove(recipe.target(), budget=150))
    assert {**shared, "estimate": None} == {**alone, "estimate": None}


@pytest.mark.slow
def test_a_search_finds_the_same_and_leaves_no_process(cluster):
    """Its units run beside Dask's workers, in processes that end with the search."""
    recipe, parts = Recipe("rare"), parts_of("uniform", budget=40)
    with Cluster(cluster["address"]) as pool:
        answers = Answers(pool)
        elsewhere = Elsewhere(answers, answers.submit(recipe, parts))
        shared = facts(search_parts(recipe.target(), parts, elsewhere=elsewhere))
        folder = str(ROOT / "harness")
    assert shared == facts(search_parts(recipe.target(), parts))
    assert [line for line in processes_of("harness.search.worker") if folder in line or sys.executable in line] == []


@pytest.mark.slow
def test_what_a_recipe_refuses_is_one_line(cluster):
    """In its own words."""
    with Cluster(cluster["address"]) as pool:
        pool.submit(Recipe("claen"), Square(1))
        with pytest.raises(WorkerError, match="on the cluster: no program 'claen'"):
            pool.next()


@pytest.mark.slow
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense"])
def test_an_address_without_a_scheduler_is_wrong_usage(address):
    """One line that names the address."""
    with pytest.raises(UsageError, match=f"no Dask scheduler answers at '{address}'"), Cluster(address):
        pass


@pytest.mark.slow
def test_workers_with_another_harness_are_refused(tmp_path):
    """One line that says what they have."""
    shutil.copytree(ROOT / "harness", tmp_path / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "harness" / "__init__.py").open("a") as file:
        file.write("\n__version__ = '99.0'\n")
    process, said = started(PYTHONPATH=str(tmp_path))
    try:
        with pytest.raises(UsageError, match=r"has harness 99\.0 .* but here is harness"), Cluster(said["address"]):
            pass
    finally:
        stop(process)


def test_a_worker_that_joins_later_is_checked_too():
    """Before it runs anything."""
    other = Identity("99.0", "0" * 8, "3.9")
    with pytest.raises(WorkerError, match=r"but here is harness 99\.0 \(00000000\) on Python 3\.9"):
        run_unit(b"", other)
