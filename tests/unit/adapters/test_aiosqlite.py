"""aiosqlite under the controlled loop: statements are jobs of one worker, and no thread is started."""

import asyncio
import threading

import aiosqlite
import pytest

from harness import execute
from harness.adapters.aiosqlite import abandon, controlled_connections
from harness.runtime.loop import LoopSettings
from harness.search.recording import Planned


async def program(path=":memory:"):
    """Write and read one row."""
    async with aiosqlite.connect(path) as connection:
        await connection.execute("CREATE TABLE numbers (number INTEGER)")
        await connection.executemany("INSERT INTO numbers VALUES (?)", [(1,), (2,)])
        await connection.commit()
        async with connection.execute("SELECT number FROM numbers") as cursor:
            return [row[0] for row in await cursor.fetchall()], threading.active_count()


def test_statements_are_jobs_and_no_thread_is_started():
    """Each is named after the sqlite3 method that it calls."""
    threads = threading.active_count()
    with controlled_connections():
        execution = execute(program, settings=LoopSettings(tracing=True))
    assert execution.ending.value == ([1, 2], threads), execution.ending
    jobs = [turn.what for turn in execution.trace if "/job:" in turn.what and not turn.what.endswith(".done")]
    assert [job.rpartition(":")[2] for job in jobs[:6]] == [
        "connector",
        "execute",
        "executemany",
        "commit",
        "execute",
        "fetchall",
    ]
    assert not execution.used_real_io


def test_one_connection_runs_its_statements_in_order():
    """Whichever of them is held: a connection has one thread."""

    async def two():
        async with aiosqlite.connect(":memory:") as connection:
            await connection.execute("CREATE TABLE numbers (number INTEGER)")
            insert = "INSERT INTO numbers VALUES (?)"
            await asyncio.gather(*(connection.execute(insert, (number,)) for number in range(3)))
            async with connection.execute("SELECT number FROM numbers") as cursor:
                return [row[0] for row in await cursor.fetchall()]

    with controlled_connections():
        recorder = Planned()
        assert execute(two, recorder).ending.value == [0, 1, 2]
        for point in recorder.seen:
            if point.kind == "hold":
                ending = execute(two, Planned({point.index: 1})).ending
                assert (ending.kind, ending.value) == ("returned", [0, 1, 2])


def test_a_cancelled_statement_is_executed_all_the_same():
    """Its thread knows of no cancellation."""

    async def cancelled():
        async with aiosqlite.connect(":memory:") as connection:
            await connection.execute("CREATE TABLE numbers (number INTEGER)")
            task = asyncio.create_task(connection.execute("INSERT INTO numbers VALUES (1)").__aenter__())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            async with connection.execute("SELECT count(*) FROM numbers") as cursor:
                return task.cancelled(), await cursor.fetchone()

    with controlled_connections():
        assert execute(cancelled).ending.value == (True, (1,))


def test_an_error_is_raised_where_the_statement_is_awaited():
    """As sqlite3 raises it."""

    async def wrong():
        async with aiosqlite.connect(":memory:") as connection:
            with pytest.raises(aiosqlite.OperationalError, match="syntax error"):
                await connection.execute("SELECT nothing from")
        return "raised"

    with controlled_connections():
        assert execute(wrong).ending.value == "raised"


def test_an_abandoned_connection_loses_what_was_not_committed(tmp_path):
    """As when its process dies."""
    path = tmp_path / "numbers.sqlite"

    async def crash():
        connection = await aiosqlite.connect(path)
        await connection.execute("CREATE TABLE numbers (number INTEGER)")
        await connection.commit()
        await connection.execute("INSERT INTO numbers VALUES (1)")
        abandon(connection)
        async with aiosqlite.connect(path) as other, other.execute("SELECT count(*) FROM numbers") as cursor:
            return await cursor.fetchone()

    with controlled_connections():
        assert execute(crash).ending.value == (0,)


def test_the_stock_loop_keeps_its_thread():
    """Also while controlled connections are on."""
    before = threading.active_count()
    with controlled_connections():
        assert asyncio.run(program()) == ([1, 2], before + 1)
    assert asyncio.run(program()) == ([1, 2], before + 1)
