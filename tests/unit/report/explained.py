"""Explanations made by hand: #9615 in a dozen rows, and others of any length."""

from harness.model.explanation import (
    NOISE,
    Deciding,
    Explanation,
    Frame,
    Lane,
    Moment,
    Ordering,
    Pending,
    Row,
    Timeline,
    WakeUp,
)
from harness.model.outcome import Ending, Violation
from harness.model.rung import Rung
from harness.model.schedule import Schedule

LANES = (Lane("flow", "flow"), Lane("flow/done", "done"), Lane("flow/flaky", "flaky"))
HERE = f"{__file__}:1"
DECIDING = ("flow/flaky raises RuntimeError", "done/save#1 commits (run 0)")


def row(turn, lane, text, *, kind="turn", name="", now_s=None, op=-1, run=-1, where=HERE, stack=True):
    """Return a row; a turn has a stack, a callback and a fact have none."""
    return Row(
        turn=turn,
        now_s=turn * 1e-6 if now_s is None else now_s,
        lane=lane,
        kind=kind,
        name=name,
        text=text,
        where=where,
        weight=NOISE,
        op=op,
        run=run,
        stack=(Frame(HERE, "outer"), Frame(where, "inner")) if stack and kind == "turn" else (),
    )


def fact(turn, lane, text, name=""):
    """Return a row that was noted in the course of a turn."""
    return row(turn, lane, text, kind="fact", name=name, run=0, where="")


def timeline(rows, *, lanes=LANES, ops=(), wake_ups=(), **more):
    """Return an execution."""
    more = {"fails": True, "text": "hold done/save#1.commit", **more}
    return Timeline(
        schedule=Schedule(),
        rung=Rung.EXACT,
        ending=Ending("returned"),
        lanes=lanes,
        rows=tuple(rows),
        ops=tuple(ops),
        wake_ups=tuple(WakeUp(cause, woken) for cause, woken in wake_ups),
        **more,
    )


def failing(**more):
    """Return #9615 as it fails: the save is held, its task is cancelled."""
    rows = [
        row(1, 0, "waits"),
        row(2, 1, "waits"),
        fact(2, 1, "completes", "done completes (run 0)"),
        fact(2, 1, "save#1 is called", "done/save#1 is called (run 0)"),
        row(3, 2, "waits"),
        row(3, 2, "call arrives", kind="arrival", op=1, now_s=0.005003),
        row(4, 2, "raises RuntimeError", name=DECIDING[0], now_s=0.005004),
        row(5, -1, "call gather.<locals>._done_callback", kind="callback", now_s=0.005005, where=""),
        row(6, 0, "raises RuntimeError", now_s=0.005006),
        row(7, 1, "is cancelled", now_s=0.005007),
        fact(7, 1, "save#1 is cancelled", "done/save#1 is cancelled (run 0)"),
    ]
    ops = (
        Pending("flow/done/save#1.commit", "point", 1, HERE, parked=1, arrived=-1, held=True),
        Pending("flow/flaky/call", "point", 2, HERE, parked=4, arrived=5),
    )
    wake_ups = [(0, 1), (0, 4), (5, 6), (6, 7), (7, 8), (8, 9)]
    return timeline(rows, ops=ops, wake_ups=wake_ups, broken=10, deciding=((6, -1),), **more)


def passing(**more):
    """Return #9615 as it passes: the save commits before the sibling raises."""
    rows = [
        row(1, 0, "waits"),
        row(2, 1, "waits"),
        fact(2, 1, "completes", "done completes (run 0)"),
        fact(2, 1, "save#1 is called", "done/save#1 is called (run 0)"),
        row(3, 2, "waits"),
        row(3, 1, "save#1.commit arrives", kind="arrival", op=0),
        row(4, 1, "returns"),
        fact(4, 1, "save#1 commits", DECIDING[1]),
        row(4, 2, "call arrives", kind="arrival", op=1, now_s=0.005003),
        row(5, 2, "raises RuntimeError", name=DECIDING[0], now_s=0.005004),
    ]
    ops = (
        Pending("flow/done/save#1.commit", "point", 1, HERE, parked=1, arrived=5),
        Pending("flow/flaky/call", "point", 2, HERE, parked=4, arrived=8),
    )
    wake_ups = [(0, 1), (0, 4), (5, 6), (8, 9)]
    more = {"text": "default order", "fails": False, **more}
    return timeline(rows, ops=ops, wake_ups=wake_ups, deciding=((9, 7),), **more)


def explanation(**more):
    """Return #9615, explained."""
    first, second = (Moment(name, HERE) for name in DECIDING)
    return Explanation(
        **{
            "title": "issue_9615 on memory",
            "setup": {"scenario": "issue_9615", "storage": "memory"},
            "violation": Violation("completed_steps_restored", "done(7) was executed again", 7),
            "promise": "A step that completed is restored.",
            "failing": failing(),
            "passing": passing(),
            "found_after": 3,
            "found_by": "sweep",
            "deciding": Deciding((Ordering(first, second),), 10, 2),
            "changes": ("- hold done/save#1.commit",),
            **more,
        }
    )


def long_one(*, tasks, turns):
    """Return an execution of many tasks that take turns in turn, each woken by the one before it."""
    lanes = tuple(Lane(f"main/worker#{number}", f"worker#{number}") for number in range(1, tasks + 1))
    rows = [row(turn + 1, turn % tasks, "waits") for turn in range(turns)]
    ops = [Pending(f"{lanes[at % tasks].path}/call", "point", at % tasks, HERE, at, -1) for at in range(0, turns, 3)]
    return timeline(rows, lanes=lanes, ops=ops, wake_ups=[(at, at + 1) for at in range(turns - 1)], broken=turns - 1)
