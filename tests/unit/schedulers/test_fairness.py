"""No lane starves, whatever the scheduler prefers."""

import asyncio
import random

import pytest

from harness import LoopSettings, Rung, execute
from harness.model.registry import load_plugin, plugin_names
from harness.runtime.lanes import MAX_PASSED_OVER

NAMES = plugin_names("harness.schedulers")


class PreferThePoller:
    """Runs the task that polls whenever it is ready."""

    def choose(self, point, /):
        """Return the lane called ``poll``."""
        names = [str(option) for option in point.enabled]
        return next((index for index, name in enumerate(names) if name == "poll"), 0)


async def program():
    """Poll for what another task does."""
    done = False

    async def poll():
        count = 0
        while not done:
            count += 1
            await asyncio.sleep(0)
        return count

    async def act():
        nonlocal done
        await asyncio.sleep(0)
        done = True

    polling = asyncio.create_task(poll())
    await asyncio.gather(polling, act())
    return polling.result()


def run(scheduler, discipline="indices"):
    """Execute at rung relaxed."""
    settings = LoopSettings(rung=Rung.RELAXED, discipline=discipline, turn_limit=20_000)
    return execute(program, scheduler, settings=settings).ending


def test_a_lane_that_is_passed_over_for_too_long_runs_next():
    """Two turns of the other task, each after at most MAX_PASSED_OVER turns of the poller."""
    ending = run(PreferThePoller())
    assert ending.kind == "returned"
    assert MAX_PASSED_OVER <= ending.value <= 2 * MAX_PASSED_OVER + 2


@pytest.mark.parametrize("name", NAMES)
def test_a_polling_task_starves_nobody(name):
    """With any scheduler and seed."""
    plugin = load_plugin("harness.schedulers", name=name, kind="scheduler")
    for seed in range(30):
        assert run(plugin.make(random.Random(seed)), plugin.discipline).kind == "returned"
