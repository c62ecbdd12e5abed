"""``harness prove`` as users see it: output, keys, exit statuses, errors in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = """
import asyncio
import harness
from agent_framework import step, workflow

@step
async def one(order: int) -> int:
    await harness.point("wait")
    return order

@workflow
async def flow(order: int) -> list[int]:
    return list(await asyncio.gather(one(order), one(order + 1)))

@harness.scenario("small", storages=["memory"], shapes=False)
async def small(durable):
    \"\"\"A small promise.\"\"\"
    await durable.run(flow, 1)
    {tail}
"""


def prove(*arguments, cwd=ROOT):
    """Return status, standard output and standard error of the command."""
    command = [sys.executable, "-m", "harness", "prove", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def scenario(tmp_path):
    """Write a scenario whose program ends as given."""

    def write(tail="pass"):
        path = tmp_path / "small.py"
        path.write_text(SCENARIO.replace("{tail}", tail))
        return str(path)

    return write


@pytest.mark.slow
def test_a_proof_covers_the_variants_of_a_scenario(tmp_path, scenario):
    """From the files beside it; a variant that is missing is told in one line."""
    path = Path(scenario())
    path.write_text(path.read_text().replace("shapes=False)", 'shapes=False, variants=("other",))'))
    status, out, err = prove(str(path))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert str(tmp_path / "other.py") in err
    (tmp_path / "other.py").write_text(SCENARIO.replace("{tail}", "pass").replace("small", "other"))
    status, out, err = prove(str(path))
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if "proved" in line] == [
        f"{name} on memory: proved, every schedule keeps the promise" for name in ("small", "other")
    ]


@pytest.mark.slow
def test_a_proof_prints_its_certificate(scenario):
    """Space, executions, states, the check and the assumptions; status 0."""
    status, out, err = prove(scenario())
    assert (status, err) == (0, "")
    assert out.startswith("small on memory: proved, every schedule keeps the promise\n")
    for text in ("space: rung latency; saves as they are; no faults", "distinct states", "check: ", "it rests on:"):
        assert text in out


@pytest.mark.slow
def test_a_proof_as_json_has_the_keys_of_a_search_and_more(scenario):
    """One object."""
    status, out, _ = prove(scenario(), "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["verdict"], found["mode"], found["complete"], found["schedule"]) == (
        "proved",
        "fingerprint",
        True,
        None,
    )
    assert found["space"] == {"rung": "latency", "shapes": False, "faults": False, "bound": None}
    for key in ("scenario", "storage", "rung", "executions", "seconds", "text", "oracle", "message", "deciding"):
        assert key in found
    assert found["check"]["difference"] is None
    assert found["assumptions"]


@pytest.mark.slow
def test_a_failing_program_lists_outcomes_that_replay(scenario):
    """Status 1, a token per outcome."""
    path = scenario('assert not harness.fault("late"), "too late"')
    status, out, _ = prove(path, "--json")
    found = json.loads(out)
    assert (status, found["verdict"], len(found["outcomes"])) == (1, "violation", 1)
    (outcome,) = found["outcomes"]
    assert outcome["text"] == "late late"
    replay = [sys.executable, "-m", "harness", "replay", path, outcome["schedule"]]
    done = subprocess.run(replay, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "too late" in done.stdout


@pytest.mark.slow
def test_a_relaxed_outcome_replays_from_its_token():
    """The discipline in which it was found is part of the token."""
    status, out, _ = prove("scenarios/issue_9615_yield.py::issue_9615_yield", "--json")
    found = json.loads(out)
    assert (status, found["outcomes"][0]["rung"]) == (1, "relaxed")
    token = found["outcomes"][0]["schedule"]
    replay = [sys.executable, "-m", "harness", "replay", "issue_9615_yield", token, "--json"]
    done = subprocess.run(replay, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["same_trace"] is True


@pytest.mark.slow
def test_a_spent_budget_has_a_status_of_its_own(scenario):
    """Status 3, with the explored part and its interval."""
    status, out, _ = prove(scenario(), "--budget", "1", "--json")
    found = json.loads(out)
    assert (status, found["verdict"]) == (3, "unfinished")
    assert 0 <= found["explored"]["low"] <= found["explored"]["fraction"] <= found["explored"]["high"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mode", "certian"), "unknown mode 'certian'; did you mean 'certain'?"),
        (("--rung", "relaxd"), "unknown rung 'relaxd'; did you mean 'relaxed'?"),
        (("--storage", "sqlight"), "unknown storage 'sqlight'"),
        (("--fix", "shielded"), "unknown fix 'shielded'"),
        (("--budget", "0"), "Invalid value for '--budget'"),
    ],
)
def test_wrong_usage_is_one_line(arguments, message):
    """Status 2."""
    status, out, err = prove("issue_9615", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
