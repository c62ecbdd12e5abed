"""The failure store under pytest: what failed runs first, what is fixed leaves, nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RACE = """
    import asyncio
    import pytest
    import harness

    @pytest.mark.interleave(budget=50)
    async def test_transfer():
        balance = 100

        async def withdraw(amount):
            nonlocal balance
            {first}
            seen = balance
            {between}
            balance = seen - amount

        await asyncio.gather(withdraw(10), withdraw(20))
        assert balance == 70
"""
BROKEN = RACE.format(first="await harness.point('lock')", between="await harness.point('database')")
FIXED = RACE.format(first="await harness.point('lock')", between="pass")
ONE_HOLD = """
    import asyncio
    import pytest
    import harness

    async def skip(name):
        pass

    @pytest.mark.interleave(budget=50)
    async def test_order():
        done = []

        async def step(name):
            await harness.point(name)
            done.append(name)

        await asyncio.gather(step("first"), step("second"))
        assert done == ["first", "second"]
"""


@pytest.fixture
def run(pytester):
    """Run pytest on one test file, in a process of its own; return the result and the files of the store."""

    def run_file(source, *arguments):
        pytester.makepyfile(test_bank=source)
        result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *arguments)
        return result, sorted((pytester.path / ".harness").glob("*"))

    return run_file


@pytest.mark.slow
def test_a_failure_is_kept_runs_first_and_leaves_when_it_is_fixed(run):
    """Three runs: found, found at once, FIXED."""
    result, files = run(BROKEN)
    result.assert_outcomes(failed=1)
    assert [file.name.rpartition("-")[0] for file in files] == ["test_transfer"]
    result, again = run(BROKEN)
    result.stdout.fnmatch_lines(["*found     after 1 execution by store*"])
    assert again == files
    result, left = run(FIXED)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["FIXED: test_bank.py::test_transfer (*): assertion holds now"])
    assert left == []
    result, _ = run(FIXED)
    result.stdout.no_fnmatch_line("*FIXED*")


@pytest.mark.slow
def test_what_diverges_says_where_and_stays(run):
    """The program has none of the ops that the schedule names."""
    _, files = run(ONE_HOLD)
    assert len(files) == 1
    result, left = run(ONE_HOLD.replace("harness.point", "skip"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["DIVERGED: test_bank.py::test_order (hold *): at choice * recorded: *, now: *.json]"])
    assert left == files


@pytest.mark.slow
def test_a_schedule_that_diverges_is_tried_in_words(run):
    """An unrelated task before it moves every choice."""
    run(ONE_HOLD)
    more = ONE_HOLD.replace("gather(step", "gather(asyncio.sleep(1), asyncio.sleep(2), step")
    result, files = run(more)
    result.stdout.fnmatch_lines(["*found     after * by store*"])
    assert len(files) == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--interleave-no-store",), ("-o", "interleave_store=")])
def test_it_can_be_switched_off(run, how):
    """Nothing is written and nothing read."""
    result, files = run(BROKEN, *how)
    result.assert_outcomes(failed=1)
    assert files == []


@pytest.mark.slow
def test_an_unreadable_file_is_one_line_and_stays(run, pytester):
    """A damaged file, one of a later format and one that is no object."""
    folder = pytester.mkdir(".harness")
    contents = {"a.json": "{", "b.json": '{"format": 9}', "c.json": "[]"}
    for name, text in contents.items():
        (folder / name).write_text(text)
    result, _ = run(FIXED)
    result.assert_outcomes(passed=1)
    lines = [line for line in result.outlines if "cannot be read and is left alone" in line]
    assert len(lines) == 3
    assert {name: (folder / name).read_text() for name in contents} == contents


@pytest.mark.slow
def test_a_known_bug_is_not_kept(pytester):
    """An expected failure is no failure."""
    pytester.mkdir("scenarios")
    text = (Path(__file__).parents[2] / "scenarios" / "issue_9615.py").read_text()
    (pytester.path / "scenarios" / "issue_9615.py").write_text(text)
    result = pytester.runpytest_subprocess("-q", "scenarios", "-k", "remote", "-p", "no:cacheprovider")
    result.assert_outcomes(xfailed=1)
    assert not (pytester.path / ".harness").exists()


@pytest.mark.slow
def test_a_store_of_tests_replays_elsewhere(run, pytester):
    """What CI kept fails on a laptop with one command, and says so when it is fixed."""
    run(BROKEN)
    (pytester.path / ".harness").rename(pytester.path / "artefact")

    def replay():
        command = [sys.executable, "-m", "harness", "replay", "artefact"]
        return subprocess.run(command, capture_output=True, text=True, cwd=pytester.path, check=False)

    failing = replay()
    assert failing.returncode == 1
    assert failing.stdout.startswith("FAILS: test_bank.py::test_transfer (")
    run(FIXED)
    fixed = replay()
    assert (fixed.returncode, fixed.stdout.partition(":")[0]) == (0, "FIXED")


@pytest.mark.slow
def test_a_store_replays_in_an_edited_program(run, pytester):
    """An unrelated task moves every choice: the words of an entry are followed; what has none of the ops diverges."""
    run(ONE_HOLD)

    def replay():
        command = [sys.executable, "-m", "harness", "replay", ".harness"]
        return subprocess.run(command, capture_output=True, text=True, cwd=pytester.path, check=False)

    pytester.makepyfile(test_bank=ONE_HOLD.replace("gather(step", "gather(asyncio.sleep(1), asyncio.sleep(2), step"))
    edited = replay()
    assert edited.returncode == 1
    assert edited.stdout.startswith("FAILS: test_bank.py::test_order (hold step/first): assertion: ")
    assert "(in words; the token diverged at choice " in edited.stdout
    pytester.makepyfile(test_bank=ONE_HOLD.replace("harness.point", "skip"))
    other = replay()
    assert other.returncode == 4
    assert other.stdout.startswith("DIVERGED: test_bank.py::test_order (hold step/first): at choice ")


@pytest.mark.slow
def test_words_are_taken_wherever_a_token_is(pytester):
    """By the marker, by --interleave-replay and by ``harness replay``; the nearest names are listed."""
    marked = ONE_HOLD.replace("budget=50", "schedule={words!r}")
    wrong = "nothing is called 'step/frist' here; nearest: step/first"
    for words, said in (("hold step/first", "schedule*hold step/first*"), ("hold step/frist", f"*{wrong}*")):
        pytester.makepyfile(test_bank=marked.format(words=words))
        result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"*{said}"])
    pytester.makepyfile(test_bank=ONE_HOLD)
    option = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "--interleave-replay", "hold step/first")
    option.assert_outcomes(failed=1)
    assert not (pytester.path / ".harness").exists()
    for words, status, stream in (("hold step/first", 1, "stdout"), ("hold step/frist", 2, "stderr")):
        command = [sys.executable, "-m", "harness", "replay", "test_bank.py::test_order", words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=pytester.path, check=False)
        assert (done.returncode, done.stdout == "", done.stderr == "") == (status, status == 2, status == 1)
        assert ("hold step/first" if status == 1 else wrong) in getattr(done, stream)


@pytest.mark.slow
def test_an_interrupt_loses_nothing(pytester):
    """A failure that was found and not yet shrunk is kept when Ctrl-C comes."""
    pytester.makepyfile(
        test_slow="""
        import asyncio, os, pytest, time
        import harness

        executions = 0

        @pytest.mark.interleave(budget=500)
        async def test_slow():
            global executions
            executions += 1
            done = []

            async def step(name):
                await harness.point(name)
                done.append(name)

            if os.environ.get("SLOW") and os.path.exists("failed"):
                time.sleep(0.2)  # what is interrupted is the search, not the program
            await asyncio.gather(*(step(name) for name in "abcd"))
            if done[0] in "cd" and done[-1] in "ab":
                open("failed", "w").close()
                assert done == []
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SLOW": "1"},
    )
    deadline = time.monotonic() + 60
    while not (pytester.path / "failed").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    kept = [json.loads(file.read_text()) for file in (pytester.path / ".harness").glob("*.json")]
    assert [entry["where"] for entry in kept] == ["test_slow.py::test_slow"]
    (pytester.path / "failed").unlink()
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*found     after 1 execution by store*"])
