"""CPython's own asyncio tests pass on the controlled loop, with real I/O allowed, as they do on the stock loop."""

import pytest
from cpython_suite import CLOCK_MODULES, MODULES, VERSIONS, compare, find_interpreter, known_differences

# What a few seconds allow: the modules of tasks and what they synchronise with.
FAST = ("eager_task_factory", "futures", "locks", "queues", "runners", "taskgroups", "timeouts", "waitfor")


def check(comparison, capsys):
    """Print the counts, and compare what differs with the list."""
    with capsys.disabled():
        print(
            f"\nPython {comparison.python}: {len(comparison.counted())} tests pass on the stock loop, "
            f"{len(comparison.passed())} of them on ours; it ran in {comparison.ran()}"
        )
    known = known_differences()
    assert {name: said for name, said in comparison.differing().items() if name not in known} == {}
    return comparison


@pytest.mark.slow
def test_tests_of_tasks_and_locks_pass_on_the_running_interpreter(capsys):
    """The modules on which every program depends, in both scopes."""
    comparison = check(compare([f"test.test_asyncio.test_{name}" for name in FAST], scopes=["loop"]), capsys)
    assert comparison.ran() > 200
    comparison = check(compare(["test.test_asyncio.test_tasks"], scopes=["clock"]), capsys)
    assert comparison.ran() > 400


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_no_test_of_cpython_fails_on_our_loop_only(version, capsys):
    """Every module, on every supported interpreter: nothing differs but what is on the list."""
    python = find_interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    comparison = check(compare(MODULES, python=python), capsys)
    assert len(comparison.counted("loop")) > 900
    assert len(comparison.counted("clock")) > 500
    assert comparison.ran() > 0.8 * len(comparison.counted())


def test_the_list_of_differences_gives_a_category_and_a_reason():
    """Every line names a test in a scope, one of two categories, and why."""
    for name, (category, reason) in known_differences().items():
        assert name.split()[0] in ("loop", "clock")
        assert category in ("private", "wall-clock")
        assert reason
    assert set(CLOCK_MODULES) <= set(MODULES)
