"""Explanations of findings that tests made, and of all that a failure store holds."""

import json
import os
import subprocess
import sys

import pytest

import harness as library
from harness.model.errors import DivergenceError, UsageError

TESTS = """
import asyncio
import pytest
import harness

class Overdrawn(Exception):
    pass

@pytest.fixture
async def accounts():
    return {"balance": 100}

@pytest.mark.parametrize("amount", [10, 20])
@pytest.mark.interleave(budget=50)
async def test_transfer(accounts, amount):
    async def withdraw(amount):
        await harness.point("lock")
        seen = accounts["balance"]
        await harness.point("database")
        accounts["balance"] = seen - amount

    await asyncio.gather(withdraw(amount), withdraw(20))
    if accounts["balance"] != 80 - amount:
        raise Overdrawn(accounts["balance"])

@pytest.mark.interleave(budget=50)
async def test_order():
    done = []

    async def step(name):
        await harness.point(name)
        done.append(name)

    await asyncio.gather(step("first"), step("second"))
    assert done == ["first", "second"]
"""
pytestmark = pytest.mark.slow


@pytest.fixture
def tokens(pytester):
    """Run pytest on the tests; return the tokens of what fails, by the name of the test."""
    pytester.makepyfile(test_it=TESTS)
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    entries = [json.loads(file.read_text()) for file in (pytester.path / ".harness").glob("*.json")]
    return {entry["where"].rpartition("::")[2]: entry["token"] for entry in entries}


@pytest.fixture
def explain(pytester):
    """Run ``harness explain``."""

    def run(*arguments, folder=""):
        return subprocess.run(
            [sys.executable, "-m", "harness", "explain", *arguments],
            capture_output=True,
            text=True,
            cwd=pytester.path / folder,
            env={**os.environ, "COLUMNS": "120"},
            check=False,
        )

    return run


def test_a_token_of_a_test_is_explained(tokens, explain, pytester):
    """As a report, as values and as a page, from a folder below, too; its own errors keep their names."""
    token = tokens["test_transfer[10]"]
    (pytester.path / "below").mkdir()
    shown = explain(token, folder="below")
    assert (shown.returncode, shown.stderr) == (1, "")
    assert shown.stdout.startswith("test_transfer[10]: assertion is violated")
    assert "Overdrawn: " in shown.stdout
    assert "\n  decides   fails when " in shown.stdout
    assert shown.stdout.splitlines()[-2:] == [
        f"  replay: python -m harness replay {token}",
        f"  export: python -m harness export {token} -o test_exported.py",
    ]
    found = json.loads(explain("test_it.py::test_transfer[10]", token, "--json", "--html", "pages").stdout)
    assert (found["title"], found["schedule"], found["failing"]["fails"]) == ("test_transfer[10]", token, True)
    assert found["failing"]["ending"] == "raised Overdrawn: 80"
    assert found["page"] == "pages/test_it.py-test_transfer-10.html"
    assert "Overdrawn" in (pytester.path / found["page"]).read_text()


def test_words_and_a_test_are_explained_as_values(tokens, pytester, monkeypatch):
    """By the library, too; what passes, what is not there and what diverged are said as for a scenario."""
    monkeypatch.chdir(pytester.path)
    found = library.explain("test_it.py::test_order", "hold step/first")
    assert (found.title, found.passing.fails) == ("test_order", False)
    assert type(found.failing.ending.error).__name__ == "AssertionError"
    assert library.explain(tokens["test_order"]).schedule == found.schedule
    for schedule, said in (("default order", "nothing to explain"), ("hold nobody", "nothing is called 'nobody'")):
        with pytest.raises(UsageError, match=said):
            library.explain("test_it.py::test_order", schedule)
    pytester.makepyfile(test_it=TESTS.replace('"first", "second"', '"one", "two"').replace("step(name)", "put(name)"))
    with pytest.raises(DivergenceError, match="replay met other operations at choice"):
        library.explain(tokens["test_order"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["test_it.py::test_none", "default order"], "cannot be executed here: ERROR"),
        (["test_none.py::test_none", "default order"], "no such test file: test_none.py"),
        (["test_it.py::test_order", "default order", "--fix", "x"], "--fix is for a scenario"),
    ],
)
def test_what_cannot_be_explained_is_one_line(pytester, explain, arguments, message):
    """Status 2, on standard error."""
    pytester.makepyfile(test_it=TESTS)
    result = explain(*arguments)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr


def test_a_store_and_one_file_of_it_are_explained(tokens, explain, pytester):
    """Each that fails has its report; what is fixed or diverged has one line."""
    whole = explain(".harness")
    assert (whole.returncode, whole.stdout.count(": assertion is violated (")) == (1, len(tokens))
    (file,) = (pytester.path / ".harness").glob("test_order-*.json")
    one = explain(str(file))
    assert (one.returncode, one.stdout.count(": assertion is violated (")) == (1, 1)
    assert "test_order" in one.stdout
    pytester.makepyfile(
        test_it=TESTS.replace('done == ["first", "second"]', "done").replace("seen -", 'accounts["balance"] -')
    )
    fixed = explain(".harness", "--json")
    assert fixed.returncode == 0
    assert {(row["verdict"], row["explanation"]) for row in json.loads(fixed.stdout)["results"]} == {("fixed", None)}
    again = explain(str(file))
    assert again.stdout == "FIXED: test_it.py::test_order (hold step/first): assertion holds now\n"
