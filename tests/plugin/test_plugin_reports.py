"""What CI systems and terminals get of a failing interleaved test."""

import re
from xml.etree import ElementTree

import pytest

RACE = """
import asyncio
import pytest
import harness

balance = 0

async def withdraw(amount):
    global balance
    before = balance
    await harness.point("database")
    balance = before - amount

async def late(amount):
    await harness.point("queue")
    await withdraw(amount)

@pytest.mark.interleave
async def test_transfer():
    global balance
    balance = 100
    await asyncio.gather(withdraw(10), late(20))
    assert balance == 70
"""
# sweep finds it: the withdrawal that began first is held until the other one has read the balance
TEXT = "hold withdraw/database"
DECIDING = "late/queue arrives before withdraw/database arrives"


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on the file in a process of its own; options and variables as given."""

    def run_file(*arguments, **variables):
        for name in ("GITHUB_ACTIONS", "NO_COLOR", "FORCE_COLOR", "PY_COLORS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        pytester.makepyfile(test_bank=RACE)
        options = ["-o", "asyncio_default_fixture_loop_scope=function", "--interleave-no-store"]
        return pytester.runpytest_subprocess("-q", *options, *arguments)

    return run_file


@pytest.mark.slow
def test_junit_and_github_get_what_decides(run, pytester):
    """Properties of the test, a message of one line, and an annotation at the source line, in one run."""
    result = run("--junitxml=report.xml", GITHUB_ACTIONS="true")
    result.assert_outcomes(failed=1)
    case = ElementTree.parse(pytester.path / "report.xml").find(".//testcase")
    found = {item.get("name").removeprefix("interleave_"): item.get("value") for item in case.iter("property")}
    assert found["schedule"].startswith("h1.")
    assert {name: found[name] for name in ("text", "rung", "oracle", "deciding")} == {
        "text": TEXT,
        "rung": "exact",
        "oracle": "assertion",
        "deciding": DECIDING,
    }
    assert case.find("failure").get("message") == f"assertion is violated when {DECIDING}"
    (line,) = [line for line in result.outlines if line.startswith("::error ")]
    assert line.startswith("::error file=test_bank.py,line=14,title=test_bank.py%3A%3Atest_transfer%3A assertion::")
    assert f"%0Afails when {DECIDING}%0Aschedule: {TEXT} (rung exact)" in line


@pytest.mark.slow
def test_a_terminal_gets_colours_and_a_file_the_same_text(run):
    """Nothing else differs."""
    coloured, piped = (run(*options).stdout.str() for options in (["--color=yes"], []))
    assert "\x1b[" not in piped
    assert "\x1b[32mlate/queue" not in coloured
    assert "\x1b[31mlate/queue arrives\x1b[0m" in coloured
    reports = [text[text.index("test_transfer: ") :].partition("FAILED ")[0] for text in (coloured, piped)]
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", reports[0])
    assert stripped.partition("replay: ")[0] == reports[1].partition("replay: ")[0]
    assert f"\n  schedule  {TEXT}\n" in reports[1]
    assert "\n  passes    - hold withdraw/database\n" in reports[1]
