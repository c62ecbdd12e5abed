"""The plan of benchmarks/peers.py: which tables there are, and which tool is asked what for each of their cells.

Owns rows, columns and limits; must not know how a tool is driven, run or written about.
"""

from __future__ import annotations

from benchmarks.peers_report import Column, Table
from benchmarks.programs import PROGRAMS

FAR = 10**9

NO_PROOF = "no exhaustive search"

RACES = Table(
    "races",
    "Executions until the first failure",
    "The programs of `benchmarks/programs.py` with g = 10; every order of ready tasks is allowed (our rung `relaxed`), "
    "since stock asyncio breaks none of them. Mean over the seeds; a search that found nothing counts with what it "
    "tried. `n of m`: searches that found the failure. `(time)`: the cell's time ended before all seeds were searched.",
    dict.fromkeys(PROGRAMS, ""),
    [
        Column("harness", "portfolio"),
        Column("detangle", "pct:3", "pct:3"),
        Column("detangle", "auto", "auto"),
        Column("simloom", "pct:auto", "pct:auto"),
        Column("simloop", "pct", "pct"),
        Column("frontrun", "dpor"),
        Column("seedloop", cannot="keeps asyncio's order"),
    ],
    task="find",
    seeds=20,
    cap=500,
    seconds=8.0,
)
THEIRS = Table(
    "theirs",
    "Executions until the first failure, in the others' own examples",
    "The mechanisms with which the other tools show what they find, written anew as plain asyncio "
    "(`benchmarks/peers/theirs.py`). Where theirs draws a duration or simulates a network, ours waits for something of "
    "unknown length: `harness.point`, and for the others a sleep of a length that the tool draws. Where our default "
    "rung finds nothing, only another order of ready tasks fails.",
    {
        "lost_update": "simloom: an update is lost",
        "check_then_set": "simloom: a flag is set a turn late",
        "torn_publication": "simloom: half of a publication is seen twice",
        "starvation": "simloom: a task gets no turn in fourteen",
        "events_in_order": "detangle: two writes of 5 ms end in another order",
        "overdraft": "detangle: an account is overdrawn",
        "philosophers": "detangle: philosophers",
        "stampede": "detangle: a cache is stampeded",
        "leaking_pool": "detangle: a timeout leaks a connection",
        "applied_twice": "seedloop: a retry is applied twice",
        "counter_over_the_wire": "simloop: an update over a network is lost",
    },
    [
        Column("harness", "rung latency (default)", "portfolio/latency"),
        Column("harness", "rung relaxed", "portfolio/relaxed"),
        Column("detangle", "auto", "auto"),
        Column("detangle", "pct:3", "pct:3"),
        Column("simloom", "random", "random"),
        Column("simloom", "pct:auto", "pct:auto"),
        Column("simloop", "random", "random"),
        Column("simloop", "pct", "pct"),
        Column("frontrun", "dpor"),
        Column("seedloop"),
    ],
    task="find",
    seeds=20,
    cap=500,
    seconds=8.0,
)
SPEED = Table(
    "speed",
    "Schedules per second",
    "Tasks by awaits of `asyncio.sleep(0)`; whole searches with each tool's uniform scheduler, nothing fails. Best of "
    "three; in parentheses the time of one schedule over that of one `asyncio.run`, which is the figure to compare. "
    "Every order of ready tasks is a choice at our rung `relaxed` and for detangle, simloom, simloop and frontrun; our "
    "default rung and seedloop keep asyncio's order here.",
    {"grid_2x3": "2 x 3", "grid_5x4": "5 x 4", "grid_10x10": "10 x 10"},
    [
        Column("asyncio"),
        Column("harness", "rung relaxed", "uniform/relaxed"),
        Column("harness", "rung latency (default)", "uniform/latency"),
        Column("detangle", strategy="random"),
        Column("simloom", strategy="random"),
        Column("simloop", strategy="random"),
        Column("frontrun"),
        Column("seedloop"),
    ],
    task="speed",
    seeds=1,
    cap=1,
    seconds=1.0,
)
PROOFS = Table(
    "proofs",
    "Size of the proof of a clean program",
    "Executions until the tool says that every order was tried, and the time. Tasks that take one lock once, and "
    "increments of a read and a write in two turns, whose sum is not checked.",
    {
        **{f"locks_{tasks}": f"{tasks} tasks, one lock" for tasks in (2, 3, 4)},
        **{f"increments_{tasks}": f"{tasks} increments" for tasks in (2, 3, 4)},
    },
    [
        Column("harness"),
        Column("detangle", "DFS, no bound"),
        Column("simloom", "systematic, no bound"),
        Column("frontrun", "dpor, no bound", "none"),
        Column("simloop", cannot=NO_PROOF),
        Column("seedloop", cannot=NO_PROOF),
    ],
    task="prove",
    seeds=1,
    cap=FAR,
    seconds=15.0,
)
PROMISES = Table(
    "promises",
    "False alarms",
    "Programs that no order of stock asyncio breaks. An alarm is an order that asyncio cannot run, or one that needs "
    "more than its documentation promises; ours carries the label of the rung that it assumes. `-`: none in 200 "
    "executions, or none that the tool has.",
    {
        "call_soon_order": "`call_soon` runs in order (documented)",
        "done_callback_order": "done-callbacks run in order (documented)",
        "gather_raises_the_first": "`gather` raises the first error",
        "cancelled_before_it_began": "a task cancelled at once never runs",
        "deadline_order": "deadlines come in order",
        "sleep_order": "the shorter sleep ends first",
        "lock_order": "a lock is handed on in order",
        "event_wake_ups": "waiters of an event wake in order",
        "queue_order": "getters of a queue are served in order",
        "first_turns": "first turns in order of creation",
        "sleeps_take_turns": "two tasks that yield take turns",
    },
    [
        Column("harness", "rung latency (default)", "portfolio/latency"),
        Column("harness", "rung relaxed", "portfolio/relaxed"),
        Column("detangle"),
        Column("detangle", "reorder=False", "auto/in-order"),
        Column("simloom"),
        Column("simloop"),
        Column("frontrun"),
        Column("seedloop"),
    ],
    task="find",
    seeds=1,
    cap=200,
    seconds=8.0,
)
FORMS = {
    "9615_memory": "in memory (right)",
    "9615_remote": "save and call of unknown length (asyncio breaks it)",
    "9615_latency": "save sleeps 1 ms, sibling fails after 5 ms (slow services break it)",
    "9615_yield": "save yields once (only another order of tasks breaks it)",
}
ISSUE = Table(
    "9615",
    "agent-framework #9615: found",
    "agent-framework-core 1.23.0, plain programs without our storage wrapper and await shapes: executions until a "
    "completed step is executed again by the resume. An operation of unknown length is `harness.point`, and for the "
    "others a sleep of a length that the tool draws.",
    FORMS,
    [
        Column("harness", "rung latency (default)", "portfolio/latency"),
        Column("harness", "rung relaxed", "portfolio/relaxed"),
        Column("detangle"),
        Column("detangle", "timer_jitter=0.01", "auto/late"),
        Column("simloom"),
        Column("simloop"),
        Column("frontrun", "dpor, explored clock"),
        Column("seedloop"),
    ],
    task="find",
    seeds=5,
    cap=200,
    seconds=8.0,
)
ISSUE_PROOFS = Table(
    "9615 proofs",
    "agent-framework #9615: proved right or refuted",
    "What each exhaustive search says of the same programs. Only the first is right. Ours also runs the orders in "
    "which the framework's set of tasks may be iterated, ten times as many; the others run the one that "
    "addresses give.",
    FORMS,
    [
        Column("harness", "rung latency (default)", "/latency"),
        Column("harness", "rung relaxed", "/relaxed"),
        Column("detangle", "DFS, its default bound", "2"),
        Column("detangle", "DFS, no bound"),
        Column("detangle", "DFS, its default bound, timer_jitter=0.01", "2/late"),
        Column("simloom", "its default bound", "2"),
        Column("simloom", "no bound"),
        Column("frontrun", "dpor, no bound", "none"),
    ],
    task="prove",
    seeds=1,
    cap=FAR,
    seconds=12.0,
)
TABLES = (SPEED, RACES, THEIRS, PROOFS, ISSUE, ISSUE_PROOFS, PROMISES)
