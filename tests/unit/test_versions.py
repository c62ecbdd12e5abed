"""``harness versions``: environments that are kept, errors of one line, and nothing half-made.

All but the long test use a fake uv, whose environments are this one under another name.
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = version("agent-framework-core")
FAKE_UV = f"""#!{sys.executable}
import os, pathlib, re, sys, time
words = sys.argv[1:]
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(" ".join(words) + "\\n")
if "venv" in words:
    python = pathlib.Path(words[-1], "bin", "python")
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text('#!/bin/sh\\nexec {sys.executable} "$@"\\n')
    python.chmod(0o755)
elif "compile" in words:
    text = sys.stdin.read()
    below = re.search(r"<(?!=)([^,\\s]+)", text)
    known = ["1.23.0", "1.22.0", "1.21.0"]
    left = known[known.index(below[1]) + 1 :] if below else known
    left = [name for name in left if name != "1.21.0" or ">=" not in text]
    if not left:
        sys.exit("error: Because there is no version of it")
    print("agent-framework-core==" + left[0])
elif any("==9." in word for word in words):
    sys.exit("Using Python\\nerror: No solution\\n  cause: Because there is no version of x==9.9.9")
elif any("==8." in word for word in words):
    sys.exit("error: Failed to fetch: https://index/simple/\\n  cause: tcp connect error")
elif any("==7." in word for word in words):
    time.sleep(60)
"""


@pytest.fixture
def run(tmp_path):
    """Return what runs ``harness versions`` of issue_9615 with the fake uv."""
    uv = tmp_path / "uv"
    uv.write_text(FAKE_UV)
    uv.chmod(0o755)

    def start(*arguments, scenario="scenarios/issue_9615.py", **variables):
        command = [sys.executable, "-m", "harness", "versions", scenario]
        command += ["--cache", str(tmp_path / "cache"), "--storage", "remote", *arguments]
        variables = {"UV": str(uv), "FAKE_LOG": str(tmp_path / "log"), "PYTHONPATH": str(ROOT), **variables}
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **variables},
            start_new_session=True,
        )

    def finish(*arguments, **variables):
        process = start(*arguments, **variables)
        output, errors = process.communicate(timeout=120)
        return process.returncode, output, errors

    finish.start = start
    finish.folder = tmp_path
    return finish


def environments(run):
    """Return the names of the environments that were kept."""
    folder = run.folder / "cache" / "environments"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.slow
def test_a_table_of_releases(run):
    """A violation with its executions; an environment that holds another release is an error, not a verdict."""
    status, output, errors = run("--versions", f"{INSTALLED},1.22.0", "--", "--no-shapes")
    assert (status, errors) == (1, "")
    lines = output.splitlines()
    assert [line.split() for line in lines[::2]] == [
        ["agent-framework-core", "remote"],
        [INSTALLED, "violation", "(1)"],
    ]
    assert lines[1].split(maxsplit=1) == [
        "1.22.0",
        f"error: agent-framework-core {INSTALLED} was found instead of 1.22.0: is it on PYTHONPATH?",
    ]


@pytest.mark.slow
def test_an_environment_is_made_once_and_json_has_rows(run):
    """The second time uv is not asked."""
    assert run("--versions", INSTALLED, "--json")[0] == 1
    asked = (run.folder / "log").read_text()
    status, output, _ = run("--versions", INSTALLED, "--json")
    assert (run.folder / "log").read_text() == asked
    assert len(environments(run)) == 1
    found = json.loads(output)
    assert (status, found["scenario"], found["package"]) == (1, "issue_9615", "agent-framework-core")
    row = found["rows"][0]
    assert {key: row[key] for key in ("version", "storage", "verdict", "executions", "error", "oracle")} == {
        "version": INSTALLED,
        "storage": "remote",
        "verdict": "violation",
        "executions": 1,
        "error": None,
        "oracle": "completed_steps_restored",
    }
    assert row["schedule"].startswith("h1.")


@pytest.mark.slow
def test_an_environment_without_its_interpreter_is_made_again(run):
    """As when the Python that it was made with was removed."""
    assert run("--versions", INSTALLED)[0] == 1
    name = environments(run)[0]
    (run.folder / "cache" / "environments" / name / "bin" / "python").unlink()
    status, output, errors = run("--versions", INSTALLED)
    assert (status, errors) == (1, "")
    assert "violation (1)" in output
    assert environments(run) == [name]


@pytest.mark.slow
def test_a_scenario_that_does_not_load_here_needs_a_package(run, tmp_path):
    """Which one to vary is unknown then; with --package it is an error of each release that cannot load it."""
    file = tmp_path / "elsewhere.py"
    file.write_text("import no_such_module\n")
    expected = f"{file} does not import: ModuleNotFoundError: No module named 'no_such_module' (line 1)"
    assert run("--versions", INSTALLED, scenario=str(file)) == (2, "", f"harness: {expected}\n")
    status, output, errors = run("--versions", INSTALLED, "--package", "agent-framework-core", scenario=str(file))
    assert (status, errors) == (2, "")
    assert output.splitlines()[1].split(maxsplit=1) == [INSTALLED, f"error: {expected}"]


@pytest.mark.slow
def test_a_program_that_does_not_fit_a_release_is_an_error(run, tmp_path):
    """It raises by itself, in the default order; an assertion of its own is a violation."""
    file = tmp_path / "raising.py"
    file.write_text(
        "import harness\n\n"
        "@harness.scenario('unfit', storages=['remote'])\n"
        "async def unfit(durable):\n    dict(no_such=1, **{'no_such': 2})\n\n"
        "@harness.scenario('asserting', storages=['remote'])\n"
        "async def asserting(durable):\n    raise AssertionError('two is not one')\n"
    )
    status, output, errors = run("--versions", INSTALLED, "--json", scenario=str(file))
    assert (status, errors) == (1, "")
    rows = json.loads(output)["rows"]
    assert [(row["scenario"], row["verdict"]) for row in rows] == [("unfit", "error"), ("asserting", "violation")]
    assert rows[0]["error"].startswith("the program raised TypeError: ")


@pytest.mark.slow
def test_bisect_asks_uv_for_the_releases(run):
    """Those between the two ends; what cannot run is not affected."""
    status, output, errors = run("--versions", f"1.22.0..{INSTALLED}", "--bisect")
    assert (status, errors) == (1, "")
    assert output.splitlines()[-1] == (
        f"first affected: {INSTALLED} (1.22.0 cannot run it); last affected: {INSTALLED} (the newest that was tried)"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--versions", "1.23.0,9.9.9"], "cannot install agent-framework-core==9.9.9: there is no such release"),
        (["--versions", "8.0.0"], "cannot install agent-framework-core==8.0.0: the package index was not reached"),
        (["--versions", "newest"], "no version: 'newest'"),
        (["--versions", ","], "no versions in ','"),
        (["--versions", "1.23.0", "--with", "a b"], "no requirement: 'a b'"),
    ],
)
def test_what_cannot_be_made_is_one_line(run, arguments, message):
    """Status 2, before anything is searched, and nothing half-made stays."""
    status, output, errors = run(*arguments)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"harness: {message}")
    assert not [name for name in environments(run) if name.startswith(".")]


@pytest.mark.slow
def test_without_uv_it_is_one_line(run, tmp_path):
    """Neither a package nor on PATH."""
    (tmp_path / "uv.py").write_text("raise ModuleNotFoundError('uv')\n")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    status, output, errors = run("--versions", INSTALLED, UV="", PATH="/nowhere", PYTHONPATH=path)
    assert (status, output) == (2, "")
    assert errors == "harness: uv is needed to make environments and was not found: pip install uv\n"


@pytest.mark.slow
def test_control_c_leaves_nothing_half_made(run):
    """While uv installs."""
    process = run.start("--versions", "7.0.0")
    log = run.folder / "log"
    deadline = time.monotonic() + 30
    while not (log.exists() and "==7.0.0" in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert (output, errors.strip()) == ("", "harness: interrupted")
    assert process.returncode == 130
    assert environments(run) == []


@pytest.mark.long
def test_real_releases(tmp_path):
    """With the real uv and the package index: #9615 as reported, on both sides of 1.2.0."""
    words = "-m harness versions scenarios/issue_9615.py --versions 1.1.1,1.2.0,1.23.0 --storage remote --json --cache"
    done = subprocess.run(
        [sys.executable, *words.split(), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    rows = [(row["version"], row["verdict"]) for row in json.loads(done.stdout)["rows"]]
    assert done.returncode == 1
    assert rows == [("1.1.1", "error"), ("1.2.0", "violation"), ("1.23.0", "violation")]
