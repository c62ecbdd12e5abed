"""What a replay has to show, whether it fails or not."""

import asyncio

import harness
from harness.search.replayed import replayed
from harness.search.target import Target


async def transfer():
    """Two withdrawals of which one is lost when the second reads before the first has written."""
    balance = [100]

    async def withdraw(amount, *, first):
        if not first:
            await harness.point("queue")
        before = balance[0]
        await harness.point("database")
        balance[0] = before - amount

    await asyncio.gather(withdraw(10, first=True), withdraw(20, first=False))
    assert balance == [70]


TARGET = Target("transfer", transfer)


def test_a_schedule_that_fails_is_explained():
    """In words or as recorded: its timeline, what decides, and the nearest that passes."""
    found = replayed(TARGET, "hold withdraw/database", title="transfer")
    assert (found.violation.oracle, found.failing.fails, found.failing.text) == (
        "assertion",
        True,
        "hold withdraw/database",
    )
    assert found.passing is not None
    again = replayed(TARGET, found.schedule, title="transfer")
    assert (again.failing.rows, again.failing.text) == (found.failing.rows, "hold withdraw/database")


def test_a_schedule_that_passes_is_shown_as_it_goes():
    """Nothing is broken, and nothing is looked for."""
    found = replayed(TARGET, "default order", title="transfer")
    assert (found.violation.oracle, found.failing.fails, found.passing) == ("", False, None)
    assert [row.text for row in found.failing.rows if row.kind == "arrival"] == [
        "database arrives",
        "queue arrives",
        "database arrives",
    ]


def test_a_hold_that_ends_with_an_event_is_shown_as_it_goes():
    """It arrives after the event, not at the end."""
    found = replayed(TARGET, "hold withdraw/database until withdraw#2/queue arrives", title="transfer")
    arrivals = [found.failing.ops[row.op].name for row in found.failing.rows if row.kind == "arrival"]
    assert arrivals == ["withdraw#2/queue", "withdraw/database", "withdraw#2/database"]
    assert [op.held for op in found.failing.ops if op.name == "withdraw/database"] == [True]
