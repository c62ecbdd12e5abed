"""Witnessed executions: who ran, what woke whom, and what was parked in between."""

import asyncio
import contextlib

import harness
from harness.model.explanation import Lane, WakeUp
from harness.runtime.faults import Countdown
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
        (2, 1, "turn", "waits for io"),
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


def test_what_happens_from_outside_is_a_cause_of_its_own():
    """The callback that cancels comes of the fact that was noted between two turns, and of no turn."""

    async def interrupted():
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(harness.point("io"))

        def cancel():
            loop.note("run.cancelled", "flow", run=0)
            loop.call_soon(task.cancel)

        loop.countdowns.append(Countdown(2, cancel))
        with contextlib.suppress(asyncio.CancelledError):
            await task

    with Target("interrupted", interrupted).open() as runner:
        schedule = runner.run(Planned({}), tracing=True).schedule
        found = witnessed_timeline(runner, schedule, oracle="assertion")
    fact = next(index for index, row in enumerate(found.rows) if row.kind == "fact")
    (woken,) = (item.woken for item in found.wake_ups if item.cause == fact)
    assert (found.rows[woken].kind, found.rows[woken].text) == ("callback", "call ControlledTask.cancel")
