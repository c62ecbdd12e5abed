"""Timelines: who ran, what woke whom, and what was parked in between."""

import asyncio

import harness
from harness.model.explanation import Lane, WakeUp
from harness.search.explain import witnessed_timeline
from harness.search.recording import Planned
from harness.search.target import Target


async def worker(event):
    """Wait at a point, then tell."""
    await harness.point("io")
    event.set()


async def program():
    """Start one worker and wait for its news."""
    event = asyncio.Event()
    task = asyncio.ensure_future(worker(event))
    await event.wait()
    await task


def timeline(plan=None):
    """Execute and return the timeline."""
    with Target("program", program).open() as runner:
        schedule = runner.run(Planned(plan or {}), tracing=True).schedule
        return witnessed_timeline(runner, schedule, oracle="assertion")


def test_rows_say_who_ran_and_what_woke_them():
    """Each turn has its lane and its cause."""
    found = timeline()
    assert found.lanes == (Lane("program", "program"), Lane("worker", "worker"))
    assert [(row.turn, row.lane, row.kind, row.text) for row in found.rows if row.kind != "callback"] == [
        (1, 0, "turn", "waits"),
        (2, 1, "turn", "waits"),
        (2, 1, "arrival", "io arrives"),
        (3, 1, "turn", "returns"),
        (4, 0, "turn", "returns"),
    ]
    assert found.wake_ups[:4] == (WakeUp(0, 1), WakeUp(2, 3), WakeUp(3, 4), WakeUp(4, 5))
    assert [frame.function for frame in found.rows[1].stack] == ["worker"]


def test_an_op_is_pending_from_where_it_was_parked_to_its_arrival():
    """A hold shows on its op."""
    (op,) = timeline().ops
    assert (op.name, op.kind, op.lane, op.parked, op.arrived, op.held) == ("worker/io", "point", 1, 1, 2, False)
    held = timeline({1: 1})
    assert [(op.name, op.held) for op in held.ops] == [("worker/io", True)]
    assert held.text == "hold worker/io"
