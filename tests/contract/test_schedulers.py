"""What every registered scheduler keeps to."""

import asyncio
import random

import pytest

import harness
from harness import LoopSettings, Rung, execute
from harness.model.choice import ChoicePoint, Scheduler
from harness.model.registry import load_plugin, plugin_names
from harness.search.recording import Planned, Recorded

NAMES = plugin_names("harness.schedulers")


async def program():
    """Make a few choices of every kind."""
    log = []

    async def worker(name):
        await asyncio.sleep(0)
        await harness.point(name)
        await asyncio.sleep(0.01)
        if harness.fault("fails"):
            log.append("fault")
        log.append(name)

    await asyncio.gather(*map(worker, "abc"))
    return log


def once(plugin, seed):
    """Execute once and return the plan that was followed and what the program returned."""
    scheduler = Recorded(plugin.make(random.Random(seed)))
    settings = LoopSettings(rung=Rung.RELAXED, discipline=plugin.discipline, turn_limit=10_000, tracing=True)
    execution = execute(program, scheduler, settings=settings)
    return scheduler.plan, execution


@pytest.mark.parametrize("name", NAMES)
def test_it_answers_with_a_legal_index(name):
    """For any number of options."""
    plugin = load_plugin("harness.schedulers", name=name, kind="scheduler")
    scheduler = plugin.make(random.Random(0))
    assert isinstance(scheduler, Scheduler)
    for kind in ("arrival", "hold", "lane", "shape", "fault", "order"):
        for options in (2, 3, 7):
            point = ChoicePoint(kind, tuple(map(str, range(options))), 0, 0.0)
            assert all(0 <= scheduler.choose(point) < options for _ in range(200))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_execution(name):
    """A scheduler draws from its source only."""
    plugin = load_plugin("harness.schedulers", name=name, kind="scheduler")
    for seed in range(5):
        one, other = once(plugin, seed), once(plugin, seed)
        assert (one[0], one[1].trace) == (other[0], other[1].trace)


@pytest.mark.parametrize("name", NAMES)
def test_its_plan_replays(name):
    """What it chose, planned again, gives the same trace: replay is the same code path as search."""
    plugin = load_plugin("harness.schedulers", name=name, kind="scheduler")
    for seed in range(5):
        plan, execution = once(plugin, seed)
        settings = LoopSettings(rung=Rung.RELAXED, discipline=plugin.discipline, turn_limit=10_000, tracing=True)
        assert execute(program, Planned(plan), settings=settings).trace == execution.trace


@pytest.mark.parametrize("name", NAMES)
def test_it_reaches_more_than_one_outcome(name):
    """It does explore."""
    plugin = load_plugin("harness.schedulers", name=name, kind="scheduler")
    outcomes = {tuple(once(plugin, seed)[1].ending.value) for seed in range(40)}
    assert len(outcomes) > 1
