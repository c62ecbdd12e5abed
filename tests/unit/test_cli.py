"""The command line: streams, exit statuses, one clear line for bad input."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = "scenarios/issue_9615.py"


def harness(*arguments, folder=ROOT, **variables):
    """Run the command line in a process of its own; a search keeps nothing in the folder of this repository."""
    if arguments[:1] == ("search",):
        arguments = (*arguments, "--no-store")
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "scenarios/nope.py"], "no such scenario file: scenarios/nope.py"),
        (["search", "issue_961"], "unknown scenario 'issue_961'; did you mean 'issue_9615'?"),
        (["search", SCENARIO, "--storage", "mem"], "unknown storage 'mem'; did you mean 'memory'?"),
        (["search", SCENARIO, "--scheduler", "uniforn"], "unknown scheduler 'uniforn'; did you mean 'uniform'?"),
        (["search", SCENARIO, "--scheduler", "trio-shuffle"], "needs --rung relaxed"),
        (["search", SCENARIO, "--fix", "shield"], "unknown fix 'shield'"),
        (["search", SCENARIO, "--rung", "exakt"], "unknown rung 'exakt'; did you mean 'exact'?"),
        (["search", SCENARIO, "--clock", "coarse"], "unknown clock model 'coarse'"),
        (["search", SCENARIO, "--budget", "-3"], "Invalid value for '--budget': -3 is not in the range x>=1."),
        (["search", SCENARIO, "--budgt", "3"], "No such option '--budgt'."),
        (["search", SCENARIO, "--html", "README.md"], "no pages can be written to README.md: README.md is no folder"),
        (["search"], "Missing argument 'SCENARIO'."),
        (["serch"], "No such command 'serch'."),
        (["explain", "h1.damaged"], "damaged schedule token: 'h1.damaged'"),
        (["replay", SCENARIO, "h1.damaged"], "damaged schedule token: 'h1.damaged'"),
        (["replay", SCENARIO, "nonsense"], "not a schedule token: 'nonsense'"),
        (["list", "--folder", "nowhere"], "no such folder: nowhere"),
        (["search", "nowhere:scenario"], "module 'nowhere' does not import"),
        (["search", "harness:execute"], "'harness:execute' is no scenario"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, message):
    """Nothing on standard output, one line on standard error."""
    result = harness(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("harness: ")
    assert message in result.stderr


@pytest.mark.slow
def test_a_scenario_file_that_does_not_import_is_one_line(tmp_path):
    """With the error and its line."""
    (tmp_path / "broken.py").write_text("import harness\nraise ValueError('no\\nway')\n")
    result = harness("search", str(tmp_path / "broken.py"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.strip().endswith("broken.py does not import: ValueError: no way (line 2)")


@pytest.mark.slow
def test_search_prints_one_json_object():
    """With the keys that tools rely on."""
    result = harness("search", SCENARIO, "--storage", "remote", "--json")
    assert result.returncode == 1
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert {key: found[key] for key in ("scenario", "storage", "verdict", "oracle", "rung", "deviations")} == {
        "scenario": "issue_9615",
        "storage": "remote",
        "verdict": "violation",
        "oracle": "completed_steps_restored",
        "rung": "exact",
        "deviations": 0,
    }
    assert found["executions"] <= 3
    assert {"seconds", "schedule", "text", "message", "deciding"} <= set(found)


@pytest.mark.slow
def test_a_token_replays_in_other_processes_with_other_hash_seeds():
    """The identical trace, whatever PYTHONHASHSEED is."""
    token = json.loads(harness("search", SCENARIO, "--storage", "sqlite", "--json").stdout)["schedule"]
    turns = set()
    for seed in ("0", "1", "4711"):
        result = harness("replay", SCENARIO, token, "--json", PYTHONHASHSEED=seed)
        assert result.returncode == 1, result.stderr
        replayed = json.loads(result.stdout)
        assert replayed["same_trace"] is True
        turns.add(replayed["turns"])
    assert len(turns) == 1


@pytest.mark.slow
def test_a_replay_with_the_fix_finds_the_promise_kept():
    """The token of the failure, on the framework with a fix applied."""
    token = json.loads(harness("search", SCENARIO, "--storage", "remote", "--json").stdout)["schedule"]
    result = harness("replay", SCENARIO, token, "--fix", "shielded-save")
    assert result.returncode == 0
    assert "no promise is broken any more" in result.stdout


@pytest.mark.slow
def test_a_token_that_no_longer_fits_says_where(tmp_path):
    """After an edit the recorded op is gone: status 4, both enabled sets."""
    text = (ROOT / SCENARIO).read_text()
    file = tmp_path / "issue_9615.py"
    file.write_text(text)
    token = json.loads(harness("search", str(file), "--storage", "sqlite", "--json").stdout)["schedule"]
    file.write_text(text.replace("async def done(", "async def charge(").replace("done(order)", "charge(order)"))
    result = harness("replay", str(file), token)
    assert result.returncode == 4
    lines = result.stderr.splitlines()
    assert lines[0].startswith("harness: replay met other operations at choice ")
    assert lines[1] == "  recorded: hold order_flow/done/job:write: hold"
    assert lines[2] == "  now:      hold order_flow/charge/job:write"


@pytest.mark.slow
def test_a_scenario_that_hangs_ends_with_its_wait_graph(tmp_path):
    """Within two seconds of real time, start of the process not counted."""
    file = tmp_path / "hangs.py"
    file.write_text(
        "import asyncio\nimport harness\n\n"
        "@harness.scenario('hangs', storages=['memory'])\n"
        "async def hangs(durable):\n    await asyncio.gather(asyncio.Event().wait(), asyncio.Lock().acquire())\n"
    )
    result = harness("search", str(file), "--json")
    assert result.returncode == 1
    found = json.loads(result.stdout)
    assert found["oracle"] == "progress"
    assert "wait waits for asyncio Event.wait" in found["message"]
    assert found["seconds"] < 2


@pytest.mark.slow
def test_a_blocking_scenario_is_interrupted_with_its_stack(tmp_path):
    """A turn that never returns."""
    file = tmp_path / "blocks.py"
    file.write_text(
        "import threading\nimport harness\n\n"
        "@harness.scenario('blocks', storages=['memory'])\n"
        "async def blocks(durable):\n    threading.Event().wait()\n"
    )
    began = time.monotonic()
    result = harness("search", str(file), "--json")
    assert time.monotonic() - began < 15
    assert result.returncode == 1
    found = json.loads(result.stdout)
    assert "threading.Event().wait()" in found["message"]
    assert found["seconds"] < 2.5  # freezegun's start included


def test_an_interrupt_in_generated_code_ends_with_the_same_status(tmp_path):
    """CPython would end by the signal after one that left an ``exec()`` of text."""
    (tmp_path / "interrupted.py").write_text(
        "from harness import cli\n\n"
        "@cli.app.command()\n"
        "def build():\n"
        "    exec('raise KeyboardInterrupt')\n\n"
        "cli.main(['build'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "harness: interrupted")


@pytest.mark.slow
def test_control_c_ends_a_search_with_what_it_did(tmp_path):
    """Status 130, the count of executions, and nothing left running."""
    begun = tmp_path / "begun"
    file = tmp_path / "endless.py"
    file.write_text(
        "import pathlib\nimport harness\n\n"
        "@harness.scenario('endless', storages=['memory'], budget=1_000_000)\n"
        "async def endless(durable):\n"
        "    for _ in range(50):\n        await harness.point('work')\n"
        f"    pathlib.Path({str(begun)!r}).touch()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "search", str(file), "--no-store"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    deadline = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130, (output, errors)
    assert "interrupted after " in output
    assert errors == ""


def test_list_names_every_scenario():
    """With storages and the affected range."""
    result = harness("list")
    assert result.returncode == 0
    assert "issue_9615 " in result.stdout
    assert "agent-framework-core >=1.2,<1.24" in result.stdout


@pytest.mark.slow
def test_search_writes_a_page_per_counterexample(tmp_path):
    """Named by scenario and storage; the path is printed, and is part of the object."""
    found = harness("search", SCENARIO, "--storage", "remote", "--storage", "sqlite", "--html", str(tmp_path / "new"))
    pages = [tmp_path / "new" / f"issue_9615-{storage}.html" for storage in ("remote", "sqlite")]
    assert found.stdout.splitlines()[-2:] == [f"page: {page}" for page in pages]
    same, other = (page.read_text(encoding="utf-8") for page in pages)
    assert "<h1>issue_9615 on remote</h1>" in same
    assert "<h1>issue_9615 on sqlite</h1>" in other
    found = harness("search", SCENARIO, "--storage", "remote", "--html", str(tmp_path / "new"), "--json")
    assert json.loads(found.stdout)["page"] == str(pages[0])
    assert pages[0].read_text(encoding="utf-8") == same


@pytest.mark.slow
def test_a_search_that_finds_nothing_makes_no_folder(tmp_path):
    """Nor does one that is refused."""
    found = harness(
        "search", SCENARIO, "--storage", "memory", "--no-shapes", "--budget", "3", "--html", str(tmp_path / "new")
    )
    assert (found.returncode, list(tmp_path.iterdir())) == (0, [])


@pytest.mark.slow
def test_a_replay_writes_a_page_whether_it_fails_or_not(tmp_path):
    """Of a token, of words, and of each entry of a store that still fails."""
    store = tmp_path / "store"
    command = [
        sys.executable,
        "-m",
        "harness",
        "search",
        SCENARIO,
        "--storage",
        "sqlite",
        "--store",
        str(store),
        "--json",
    ]
    token = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120).stdout)[
        "schedule"
    ]
    found = harness("replay", token, "--html", str(tmp_path / "token"), "--json")
    page = tmp_path / "token" / "issue_9615-sqlite.html"
    assert json.loads(found.stdout)["page"] == str(page)
    assert "</strong> is violated" in page.read_text(encoding="utf-8")
    found = harness("explain", token, "--html", str(tmp_path / "explained"))
    assert found.stdout.splitlines()[-1] == f"page: {tmp_path / 'explained' / page.name}"
    words = ("replay", SCENARIO, "hold order_flow/flaky/call", "--storage", "sqlite", "--html", str(tmp_path / "words"))
    found = harness(*words)
    page = tmp_path / "words" / "issue_9615-sqlite.html"
    assert found.stdout.splitlines()[-1] == f"page: {page}"
    assert "No promise is broken in this schedule" in page.read_text(encoding="utf-8")
    found = harness("replay", str(store), "--html", str(tmp_path / "all"))
    assert found.stdout.splitlines()[-1] == f"pages: {tmp_path / 'all'}"
    assert [file.name for file in (tmp_path / "all").iterdir()] == ["issue_9615-sqlite.html"]


@pytest.mark.slow
def test_explain_says_what_decides_as_text_and_as_values():
    """Status 1 while it fails; the report of a search, and all of it as one object."""
    words = (SCENARIO, "default order", "--storage", "remote", "--no-shapes")
    shown = harness("explain", *words)
    assert shown.returncode == 1
    assert "\n  decides   fails when order_flow/flaky raises RuntimeError  scenarios/issue_9615.py:25\n" in shown.stdout
    found = json.loads(harness("explain", *words, "--json").stdout)
    assert found["deciding"] == ["order_flow/flaky raises RuntimeError", "done/save#1 commits (run 0)"]
    assert found["changes"] == ["+ hold order_flow/flaky/call"]
    assert [found["failing"]["fails"], found["passing"]["fails"]] == [True, False]
    assert max(item["woken"] for item in found["failing"]["wake_ups"]) < len(found["failing"]["rows"])


@pytest.mark.slow
def test_a_schedule_that_passes_needs_no_explanation():
    """Status 0 and one line."""
    result = harness("explain", SCENARIO, "hold flaky/call", "--storage", "remote", "--no-shapes")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "issue_9615 on remote: no promise is broken any more, so there is nothing to explain\n"


@pytest.mark.slow
def test_github_is_told_where_on_standard_error():
    """Standard output stays one JSON object."""
    result = harness("search", SCENARIO, "--storage", "remote", "--no-shapes", "--json", GITHUB_ACTIONS="true")
    json.loads(result.stdout)
    assert result.stderr.startswith(
        "::error file=scenarios/issue_9615.py,line=25,title=issue_9615 on remote%3A completed_steps_restored::"
    )


@pytest.mark.slow
def test_a_clean_search_says_what_was_not_judged():
    """With the reason that the scenario gives."""
    result = harness("search", "scenarios/graph_resume.py", "--storage", "memory", "--budget", "2")
    assert (result.returncode, result.stderr) == (0, "")
    last = result.stdout.splitlines()[-1]
    assert (
        last == "not judged: completed-steps-restored (a superstep that did not end runs as a whole again, by design)"
    )
