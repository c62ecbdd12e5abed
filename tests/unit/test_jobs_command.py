"""``--jobs`` as users see it: the same output, Ctrl-C, and no process that is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = """
import asyncio
from pathlib import Path
import harness
from agent_framework import step, workflow

@step
async def one(order: int) -> int:
    for number in range(6):
        await harness.point(f"wait {number}")
    return order

@workflow
async def flow(order: int) -> list[int]:
    return list(await asyncio.gather(*(one(order + number) for number in range(4))))

@harness.scenario("large", storages=["memory"], shapes=False)
async def large(durable):
    \"\"\"A promise of many schedules.\"\"\"
    await durable.run(flow, 1)
    with Path("executions").open("a") as file:
        file.write(".")
"""


def harness(*arguments):
    """Return status, standard output and standard error of a command."""
    command = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def without_times(value):
    """Return JSON data without what differs from run to run."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "seconds"}
    return [without_times(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_search_by_two_prints_the_same():
    """Each storage, also when they are searched at the same time."""
    storages = ("--storage", "memory", "--storage", "remote", "--budget", "30")
    command = ("search", "issue_9615", *storages, "--no-shapes", "--no-store", "--no-database", "--json")
    alone, both = harness(*command), harness(*command, "--jobs", "2")
    assert both[0] == alone[0] == 1
    assert without_times(json.loads(both[1])) == without_times(json.loads(alone[1]))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["prove", "search"])
def test_interrupting_ends_every_process_and_says_what_is_known(command, tmp_path):
    """Status 130, at once."""
    (tmp_path / "large.py").write_text(SCENARIO)
    options = ["--budget", "100000", "--no-store"] if command == "search" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", command, "large.py", "--jobs", "2", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    executions = tmp_path / "executions"
    until = time.monotonic() + 60
    while time.monotonic() < until and not (executions.exists() and executions.stat().st_size > 5):
        os.sched_yield()
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    # on standard error where workers began before this process knew of anything that it could tell
    assert "interrupted" in out or err.strip() == "harness: interrupted"
    assert time.monotonic() - began < 20
    assert len(workers) >= 2
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["prove", "search"])
@pytest.mark.parametrize("wrong", [("--jobs", "0"), ("--jobs", "2", "--cluster", "tcp://127.0.0.1:1")])
def test_wrong_jobs_are_one_line(command, wrong):
    """Status 2."""
    status, out, err = harness(command, "issue_9615", *wrong)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "--jobs" in err
