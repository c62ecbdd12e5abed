"""Shrinking: to the fewest deviations, in few executions, and what is known below."""

import asyncio
import math
import random
from pathlib import Path

import pytest

import harness
from harness import Rung
from harness.adapters.loading import find_scenario
from harness.adapters.targets import scenario_target
from harness.model.explanation import Minimal
from harness.schedulers.ranks import Ranks
from harness.search.portfolio import Trial
from harness.search.recording import Planned, Recorded
from harness.search.shrink import check_below, shrink
from harness.search.target import Target

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def bound(plan, shrunk):
    """Return how many executions shrinking may take: d deviations are left of k."""
    return 2 * len(shrunk.plan) * math.log2(max(len(plan), 2)) + 20


def late_program(tasks, needed):
    """Return a program that fails when all tasks of ``needed`` come after the last of the others."""

    async def program():
        order = []

        async def work(number):
            await harness.point(f"op{number}")
            order.append(number)

        await asyncio.gather(*(work(number) for number in range(tasks)))
        assert set(order[-len(needed) :]) != set(needed), order

    return program


@pytest.mark.parametrize(("tasks", "needed"), [(8, [3]), (32, [0, 20]), (48, [5, 6, 40]), (64, [1, 17, 33, 49])])
def test_what_is_left_is_needed_and_takes_few_executions(tasks, needed):
    """Every op is held or early at first; the holds that are needed are found by bisection."""
    with Target("late", late_program(tasks, needed)).open() as runner:
        trial = Trial(runner, budget=1)
        recorder = Planned()
        trial.run(recorder)
        holds = [point.index for point in recorder.seen if point.kind == "hold"]
        plan = {holds[number]: 1 for number in needed}
        # early arrivals, which are not needed
        plan |= {index: 2 for index in holds if index not in plan}
        assert trial.run(Planned(plan), beyond=True).violations
        shrunk = shrink(trial, plan, "ranks", Rung.LATENCY)
    assert sorted(shrunk.plan) == [holds[number] for number in needed]
    assert shrunk.executions <= bound(plan, shrunk)


def test_all_schedules_below_are_executed_where_they_are_few():
    """Two holds are needed: each single deviation is tried, and the default schedule."""
    with Target("late", late_program(4, [0, 1])).open() as runner:
        trial = Trial(runner, budget=1)
        recorder = Planned()
        trial.run(recorder)
        holds = [point.index for point in recorder.seen if point.kind == "hold"]
        singles = sum(point.options - 1 for point in recorder.seen)
        shrunk = shrink(trial, dict.fromkeys(holds[:2], 1), "ranks", Rung.LATENCY)
        assert check_below(trial, shrunk, Rung.LATENCY) == (shrunk, Minimal(2, complete=True, tried=1 + singles))


def test_what_is_too_much_is_said():
    """Four holds of sixteen tasks: triples are not tried."""
    with Target("late", late_program(16, [0, 1, 2, 3])).open() as runner:
        trial = Trial(runner, budget=1)
        recorder = Planned()
        trial.run(recorder)
        holds = [point.index for point in recorder.seen if point.kind == "hold"]
        shrunk = shrink(trial, dict.fromkeys(holds[:4], 1), "ranks", Rung.LATENCY)
        minimal = check_below(trial, shrunk, Rung.LATENCY)[1]
    assert (minimal.below, minimal.complete) == (2, False)
    assert minimal.reason.endswith("schedules have 2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("issue_9615", "memory"),
        ("issue_9615_latency", "slow"),
        ("issue_9615_yield", "yielding"),
        ("issue_7647", "file"),
    ],
)
def test_the_catalogue_shrinks_within_the_bound(name, storage):
    """From random ranks, with any await shape, whatever the seed."""
    target = scenario_target(find_scenario(name, folder=SCENARIOS), storage)
    with target.open() as runner:
        for seed in range(4):
            trial = Trial(runner, budget=1000)
            source = random.Random(seed)
            plan = None
            while plan is None:
                scheduler = Recorded(Ranks(source))
                plan = scheduler.plan if trial.run(scheduler, rung=target.rung).violations else None
            shrunk = shrink(trial, plan, "ranks", target.rung)
            assert shrunk.executions <= bound(plan, shrunk)
            assert len(check_below(trial, shrunk, target.rung)[0].plan) <= 1
