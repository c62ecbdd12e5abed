"""Exports of findings that tests made: plain tests, and tests of durable workflows."""

import json
import os
import subprocess
import sys

import pytest

BANK = """
import asyncio

class Bank:
    def __init__(self, wait, balance):
        self.wait, self.balance = wait, balance

    async def withdraw(self, amount):
        {first}
        seen = self.balance
        {between}
        self.balance = seen - amount

    async def audit(self):
        await asyncio.sleep(1)
        self.audited = self.balance
"""
BROKEN = BANK.format(first="pass", between="await self.wait()")
FIXED = BANK.format(first="await self.wait()", between="pass")
TESTS = '''
import asyncio
import pytest
from bank import Bank
import harness

async def database():
    """Answer after an unknown time."""
    await harness.point("database")

@pytest.fixture
def balance():
    return 100

@pytest.fixture
async def bank(balance):
    return Bank(database, balance)

@pytest.mark.parametrize("amount", [0, 10])
@pytest.mark.interleave(budget=30)
async def test_transfer(bank, amount, tmp_path):
    """Two withdrawals at once are both counted."""
    # side by side
    await asyncio.gather(bank.withdraw(amount), bank.withdraw(20))

    assert bank.balance == 80 - amount

@pytest.mark.interleave(budget=30)
async def test_order():
    done = []

    async def step(name):
        await asyncio.sleep(0.1)
        done.append(name)

    async def busy():
        for _ in range(5):
            await asyncio.sleep(0)
        done.append("busy")

    await asyncio.gather(step("first"), asyncio.to_thread(done.append, "job"), busy())
    assert done.index("job") < done.index("first")

@pytest.mark.interleave(budget=30)
async def test_audit():
    bank = Bank(database, 100)
    await asyncio.gather(bank.audit(), bank.withdraw(20))
    assert bank.audited == 100

@pytest.mark.interleave(budget=30)
async def test_ends():
    locks = asyncio.Lock(), asyncio.Lock()

    async def take(one, other):
        async with locks[one]:
            await harness.point("work")
            async with locks[other]:
                pass

    await asyncio.gather(take(0, 1), take(1, 0))
'''
EXPORTED = '''"""Two withdrawals at once are both counted."""

import asyncio

import pytest
from bank import Bank

gates = {"database": asyncio.Event()}


async def finish(run):
    """Await ``run``; whenever nothing else can happen, open the next gate."""
    task = asyncio.ensure_future(run)
    while not task.done():
        for _ in range(1000):  # loop iterations, not a time: all that is ready runs, on a slow machine too
            await asyncio.sleep(0)
        if not task.done() and (closed := [gate for gate in gates.values() if not gate.is_set()]):
            closed[0].set()
    return await task


async def database():
    """Answer after an unknown time."""
    await gates["database"].wait()


@pytest.fixture
def balance():
    return 100


async def make_bank(balance):
    return Bank(database, balance)


def test_transfer(balance, tmp_path):
    async def main():
        amount = 10
        bank = await make_bank(balance)
        # side by side
        await asyncio.gather(bank.withdraw(amount), bank.withdraw(20))

        assert bank.balance == 80 - amount

    asyncio.run(finish(main()))
'''
FLOWS = '''
import asyncio
import pytest
from agent_framework import InMemoryCheckpointStorage, step, workflow
import harness

@step
async def charge(order: int) -> str:
    return f"charged order {order}"

@step
async def ship(order: int) -> str:
    await harness.point("carrier")
    return f"shipped order {order}"

@workflow
async def order_flow(order: int) -> list[str]:
    return [await charge(order), await ship(order)]

class SlowStorage(InMemoryCheckpointStorage):
    async def save(self, checkpoint):
        await asyncio.sleep(0.1)
        return await super().save(checkpoint)

@pytest.mark.interleave(storages=["remote"], faults=["cancel"], shapes=False)
async def test_restored(durable):
    """What was charged is not charged again."""
    run = await durable.run(order_flow, 7)
    await durable.resume(run)

@pytest.mark.interleave(storages={"slow": lambda _: SlowStorage()}, faults=["crash"], oracles=(), shapes=False)
async def test_stored(durable):
    """Something is stored, however the run ends."""
    run = await durable.run(order_flow, 7)
    if not run.outputs:
        assert await durable.storage.get_latest(workflow_name="order_flow") is not None
'''
pytestmark = pytest.mark.slow


@pytest.fixture
def found(pytester):
    """Run pytest on a file of tests; return the tokens of what fails, by the name of the test."""

    def run(source, *arguments, **files):
        pytester.makepyfile(**files, test_it=source)
        pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *arguments)
        entries = [json.loads(file.read_text()) for file in (pytester.path / ".harness").glob("*.json")]
        return {entry["where"].rpartition("::")[2]: entry["token"] for entry in entries}

    return run


def harness_command(pytester, *arguments):
    """Run the command line."""
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=pytester.path, check=False)


def on_the_stock_loop(pytester, name, *, folder=""):
    """Run an exported file without any plug-in; return the status and the lines of its error."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
        capture_output=True,
        text=True,
        cwd=pytester.path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(pytester.path)},
        check=False,
    )
    return done.returncode, [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E ")]


def test_a_test_with_fixtures_is_exported_and_passes_after_the_fix(found, pytester):
    """Its async fixture is called, its parameter a variable; what it imports is imported."""
    tokens = found(TESTS, "-k", "transfer", bank=BROKEN)
    result = harness_command(pytester, "export", tokens["test_transfer[10]"], "-o", "exports/test_race.py")
    assert (result.returncode, result.stderr) == (0, "")
    assert (pytester.path / "exports" / "test_race.py").read_text() == EXPORTED
    assert on_the_stock_loop(pytester, "exports/test_race.py")[0] == 1
    pytester.makepyfile(bank=FIXED)
    assert on_the_stock_loop(pytester, "exports/test_race.py") == (0, [])
    fixed = harness_command(pytester, "export", tokens["test_transfer[10]"])
    assert (fixed.returncode, fixed.stderr.count("\n")) == (1, 1)
    assert "no promise is broken any more" in fixed.stderr


def test_sleeps_threads_and_deadlocks_have_a_plain_form(found, pytester):
    """A job of a thread is done when its gate opens, so is a sleep elsewhere; and a test that never ends fails."""
    tokens = found(TESTS, "-k", "order or ends or audit", bank=BROKEN)
    for name, said in (("test_order", "AssertionError"), ("test_ends", "it waits for"), ("test_audit", "assert 80 =")):
        result = harness_command(pytester, "export", tokens[name], "-o", f"exports/{name}_plain.py")
        assert (result.returncode, result.stderr) == (0, "")
        status, errors = on_the_stock_loop(pytester, f"exports/{name}_plain.py")
        assert (status, said in errors[0]) == (1, True)
        assert "harness" not in (pytester.path / "exports" / f"{name}_plain.py").read_text()


def test_tests_of_workflows_are_exported(found, pytester):
    """With the oracle's assertion, or with their own; words do as well as a token."""
    tokens = found(FLOWS)
    result = harness_command(pytester, "export", tokens["test_restored[remote]"], "-o", "test_plain.py")
    assert (result.returncode, result.stderr) == (0, "")
    text = (pytester.path / "test_plain.py").read_text()
    assert text.startswith('"""What was charged is not charged again."""\n')
    assert 'assert executed.count("charge") == 1, f"a completed step was executed again: {executed}"' in text
    words = harness_command(pytester, "export", "test_it.py::test_stored[slow]", "run 0 crashed at moment 1")
    assert (words.returncode, words.stderr) == (0, "")
    assert "storage = copy.deepcopy(storage)" in words.stdout
    assert 'assert await storage.get_latest(workflow_name="order_flow") is not None' in words.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["test_it.py::test_order", "hold nobody"], 2, "nothing is called 'nobody' here; nearest: "),
        (["test_it.py::test_none", "default order"], 2, "cannot be executed here: ERROR"),
        (["test_none.py::test_none", "default order"], 2, "no such test file: test_none.py"),
        (["test_it.py::test_order", "default order"], 1, "no promise is broken any more"),
    ],
)
def test_what_cannot_be_exported_says_why(pytester, arguments, status, message):
    """One line, and no file."""
    pytester.makepyfile(test_it=TESTS, bank=BROKEN)
    result = harness_command(pytester, "export", *arguments, "-o", "test_no.py")
    assert (result.returncode, result.stdout) == (status, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (pytester.path / "test_no.py").exists()
