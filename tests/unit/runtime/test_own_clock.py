"""Programs that put a clock of their own in place of the loop's."""

import asyncio
import time
from unittest import mock

from harness.runtime.execution import execute
from harness.runtime.loop import LoopSettings


class HandClock:
    """Winds a clock in ``select``, as ``aiotools.VirtualClock`` 2.2.4 does."""

    def __init__(self):
        self.now_s = 0.0

    def select(self, timeout):
        self.now_s += timeout or 0
        return []


def patched(loop, clock):
    return mock.patch.multiple(loop, time=lambda: clock.now_s), mock.patch.object(
        loop._selector, "select", clock.select
    )


async def tells_the_time():
    loop = asyncio.get_running_loop()
    clock = HandClock()
    order = []

    async def sleeps(delay_s):
        await asyncio.sleep(delay_s)
        order.append((delay_s, round(clock.now_s, 6)))

    one, other = patched(loop, clock)
    with one, other:
        await asyncio.gather(sleeps(20), sleeps(3600))
    await asyncio.sleep(1)
    return order


def test_hand_clock_moves_as_on_the_stock_loop():
    """Sleeps end when the program's own clock says so."""
    execution = execute(tells_the_time, settings=LoopSettings(turn_limit=1000))
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner, mock.patch("asyncio.sleep", short_sleep):
        stock = runner.run(tells_the_time())
    assert (execution.ending.value, stock) == ([(20, 20), (3600, 3600)], [(20, 20), (3600, 3600)])


def test_deadlock_is_found_under_a_hand_clock():
    """A clock that nothing waits for cannot hide that nothing can run."""

    async def waits_for_ever():
        loop = asyncio.get_running_loop()
        one, other = patched(loop, HandClock())
        with one, other:
            await loop.create_future()

    began = time.monotonic()
    assert (execute(waits_for_ever).ending.kind, time.monotonic() - began < 1) == ("deadlock", True)


stock_sleep = asyncio.sleep


async def short_sleep(delay_s):
    """Sleep, but not for the second that the stock loop would really take."""
    await stock_sleep(0 if delay_s == 1 else delay_s)
