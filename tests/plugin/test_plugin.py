"""The pytest plugin, as its users see it."""

import re

import pytest

RACE = """
    import asyncio
    import pytest
    import harness

    class Bank:
        def __init__(self):
            self.balance = 100

        async def withdraw(self, amount):
            balance = self.balance
            await harness.point("database")
            self.balance = balance - amount

    @pytest.fixture
    def bank():
        return Bank()

    @pytest.fixture
    async def opened(bank):
        await asyncio.sleep(0.1)
        yield bank
        assert asyncio.get_running_loop().time() > 0.1
        bank.balance = None
"""


ORDER_FLOW = """
import asyncio
import harness
from agent_framework import step, workflow

@step
async def charge(order):
    return order

@step
async def ship(order):
    await harness.point("call")
    if harness.attempt() == 0:
        raise RuntimeError("down")
    return order

@workflow
async def order_flow(order):
    return list(await asyncio.gather(charge(order), ship(order)))
"""


@pytest.fixture
def run(pytester):
    """Run pytest on one test file, in a process of its own, and return the result."""

    def run_file(source, *arguments, mode="strict"):
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess(
            "-q", "-o", f"asyncio_mode={mode}", "-o", "asyncio_default_fixture_loop_scope=function", *arguments
        )

    return run_file


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_it_works_beside_pytest_asyncio(run, mode):
    """Marked tests are ours, others are pytest-asyncio's, in both modes; fixtures are fresh each time."""
    source = (
        RACE
        + """
    executions = []

    @pytest.mark.interleave(budget=20)
    async def test_fixtures_are_fresh(bank, opened, tmp_path):
        assert bank is opened
        assert bank.balance == 100
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").write_text("x")
        executions.append(1)
        await asyncio.gather(bank.withdraw(10), asyncio.sleep(1))
        assert bank.balance == 90

    def test_it_ran_often():
        assert len(executions) > 5

    @pytest.mark.asyncio
    async def test_plain():
        assert not isinstance(asyncio.get_running_loop(), harness.ControlledLoop)
        await asyncio.sleep(0.01)
    """
    )
    run(source, mode=mode).assert_outcomes(passed=3)


@pytest.mark.slow
def test_a_race_fails_with_a_report_and_replays(run, pytester):
    """The failure section has the rung, the schedule and one line that fails again; after a fix it passes."""
    source = (
        RACE
        + """
    @pytest.mark.interleave
    async def test_two_withdrawals(bank):
        await asyncio.gather(bank.withdraw(10), bank.withdraw(20))
        assert bank.balance == 70
    """
    )
    result = run(source)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "test_two_withdrawals: assertion is violated (rung exact)" in text
    assert "schedule  default order" in text
    assert "assert 80 == 70" in text
    assert "harness/" not in text
    name, token = re.search(r"replay: pytest '(\S+)' --interleave-replay (\S+)", text).groups()
    again = pytester.runpytest_subprocess("-q", name, "--interleave-replay", token)
    again.assert_outcomes(failed=1)
    assert "violated (rung exact), replayed" in again.stdout.str()


@pytest.mark.slow
def test_endings_and_wrong_use_are_one_report_each(run):
    """A deadlock shows who waits; a typo in the marker names the option; a sync test is refused."""
    source = (
        RACE
        + """
    @pytest.mark.interleave
    async def test_dead():
        await asyncio.Event().wait()

    @pytest.mark.interleave(budgt=3)
    async def test_typo():
        pass

    @pytest.mark.interleave
    def test_sync():
        pass

    @pytest.mark.interleave(rung="lax")
    async def test_rung():
        pass

    def test_durable(durable):
        pass
    """
    )
    result = run(source)
    result.assert_outcomes(failed=4, errors=1)
    text = result.stdout.str()
    for line in (
        "test_dead waits for asyncio Event.wait at test_endings_and_wrong_use_are_one_report_each.py:",
        "unknown option of interleave 'budgt'; did you mean 'budget'?",
        "test_sync is marked interleave but is not an async function",
        "unknown rung 'lax'",
        "the fixture 'durable' needs @pytest.mark.interleave",
    ):
        assert line in " ".join(text.split())


@pytest.mark.slow
def test_wrong_options_are_one_line_and_status_4(run):
    """pytest's own status for wrong usage."""
    source = "def test_nothing(): pass"
    for arguments in (["--interleave-budget", "0"], ["--interleave-replay", "h1.damaged"], ["--interleave-budget=x"]):
        result = run(source, *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "interleave" in result.stderr.str()


@pytest.mark.slow
def test_a_durable_workflow_runs_once_per_storage(run):
    """As the design shows it: run, resume, and the oracles judge."""
    source = """
import pytest

@pytest.mark.interleave(storages=["memory", "remote"], shapes=False)
async def test_order_survives(durable):
    run = await durable.run(order_flow, 7)
    await durable.resume(run)
"""
    result = run(ORDER_FLOW + source, "-W", "ignore")
    result.assert_outcomes(passed=1, failed=1)
    assert "test_order_survives[remote]: completed_steps_restored is violated (rung exact)" in result.stdout.str()


@pytest.mark.slow
def test_the_search_makes_up_workflows(run):
    """The fixture flow is one; #9615 is found in it."""
    source = """
    import pytest

    @pytest.mark.interleave(storages=["memory", "remote"], shapes=False, budget=300, workflows={"max_siblings": 2})
    async def test_any_flow(durable, flow):
        run = await durable.run(flow.workflow, flow.message)
        if run.error:
            run = await durable.resume(run)
        assert run.outputs == [flow.expected]
    """
    result = run(source, "-W", "ignore")
    result.assert_outcomes(passed=1, failed=1)
    assert "test_any_flow[remote]: completed_steps_restored is violated (rung exact)" in result.stdout.str()


SCENARIO = f'''{ORDER_FLOW}
@harness.scenario("orders", storages=["memory", "remote"], affected={{affected!r}}, breaks_on={{breaks_on!r}})
async def orders(durable):
    """Orders survive."""
    await durable.resume(await durable.run(order_flow, 7))
'''


@pytest.fixture
def run_scenario(pytester):
    """Run pytest on a folder of one scenario."""

    def run_folder(**values):
        folder = pytester.mkdir("scenarios")
        (folder / "orders.py").write_text(SCENARIO.format(**values))
        return pytester.runpytest_subprocess("-q", "-rx", "-o", "xfail_strict=true", "scenarios")

    return run_folder


@pytest.mark.slow
def test_a_known_open_bug_is_an_expected_failure(run_scenario):
    """In the affected range, on the storages that break."""
    result = run_scenario(affected=">=1.22,<1.24", breaks_on=("remote",))
    result.assert_outcomes(passed=1, xfailed=1)
    assert "known open bug: orders in agent-framework-core" in result.stdout.str()


@pytest.mark.slow
def test_a_scenario_of_a_framework_that_is_not_installed_is_skipped(pytester):
    """The reason names it."""
    folder = pytester.mkdir("scenarios")
    (folder / "foreign.py").write_text(
        "import harness\n\n"
        "@harness.scenario('foreign', storages=['a', 'b'], adapter='x', package='x', requires=('no-such-thing>=2',))\n"
        "async def foreign(durable):\n    'Hold.'\n"
    )
    result = pytester.runpytest_subprocess("-q", "-rs", "scenarios")
    result.assert_outcomes(skipped=2)
    assert "needs no-such-thing>=2, which is not installed" in result.stdout.str()


@pytest.mark.slow
def test_a_bug_that_is_gone_turns_the_run_red(run_scenario):
    """The expectation is strict, so the day of the fix is noticed."""
    result = run_scenario(affected=">=1.22,<1.24", breaks_on=("remote", "memory"))
    result.assert_outcomes(failed=1, xfailed=1)
    assert "[XPASS(strict)] orders in agent-framework-core" in result.stdout.str()


@pytest.mark.slow
def test_a_bug_outside_the_affected_range_fails(run_scenario):
    """A release that should be fixed and is not."""
    result = run_scenario(affected="<1.22", breaks_on=None)
    result.assert_outcomes(failed=1, passed=1)
    assert "orders[remote]: completed_steps_restored is violated" in result.stdout.str()


@pytest.mark.slow
def test_a_scenario_file_that_does_not_import_is_one_line(pytester):
    """With the file, the error and its line."""
    folder = pytester.mkdir("scenarios")
    (folder / "broken.py").write_text("import harness\n\nscenario = nonsense\n")
    result = pytester.runpytest_subprocess("-q", "scenarios")
    result.assert_outcomes(errors=1)
    assert "does not import: NameError: name 'nonsense' is not defined (line 3)" in result.stdout.str()
