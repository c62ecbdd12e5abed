"""async-lru: a cache entry with a short life is still there a turn later."""

import asyncio
import time

from async_lru import alru_cache


@alru_cache(ttl=0.1)
async def value():
    return 1


async def main():
    await value()
    time.sleep(0.2)  # the process does not get the processor
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the timer that drops the entry runs first
    await value()
    assert value.cache_info().hits == 1  # fails


asyncio.run(main())
