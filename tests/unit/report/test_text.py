"""Reports of failures: whole texts, and that they fit."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness.adapters.loading import find_scenario
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.explanation import Lane, Minimal, Row, Timeline
from harness.model.outcome import Ending
from harness.model.rung import Rung
from harness.model.schedule import Schedule
from harness.report.lines import plain
from harness.report.table import table
from harness.report.text import failure_report
from harness.search.explain import explanation_of
from harness.search.portfolio import search

SCENARIOS = Path(__file__).parents[3] / "scenarios"


async def transfer():
    """Two withdrawals, one of which is slow to begin."""
    balance = 100

    async def withdraw(amount):
        nonlocal balance
        before = balance
        await harness.point("database")
        balance = before - amount

    async def late():
        await harness.point("queue")
        await withdraw(20)

    await asyncio.gather(withdraw(10), late())
    assert balance == 70


async def crowd():
    """Twelve tasks, of which the first must not be last."""
    order = []

    async def work(number):
        await harness.point("call")
        order.append(number)

    await asyncio.gather(*(work(number) for number in range(12)))
    assert order[-1] != 0


def report(explanation, *, width=100):
    """Return the text, with the numbers of this file's lines counted from their function's first one."""
    text = plain(failure_report(explanation, replay="harness replay TOKEN", export="harness export TOKEN", width=width))

    def relative(match):
        line = int(match[2])
        code = max((c for c in (transfer.__code__, crowd.__code__) if c.co_firstlineno <= line), key=first_line)
        return f"{match[1]}+{line - code.co_firstlineno:<{len(match[2]) - 1}}".rstrip()

    return re.sub(r"(test_text\.py):(\d+)", relative, text)


def first_line(code):
    """Return where a function begins."""
    return code.co_firstlineno


LOST = """\
transfer: assertion is violated (rung exact)
  expected  the program returns without an error
  got       the program raised AssertionError: assert 90 == 70
  found     explained with 65 executions
  schedule  hold withdraw/database
  decides   fails when late/queue arrives  tests/unit/report/test_text.py+11
                before withdraw/database arrives  tests/unit/report/test_text.py+7
            passes when it is the other way round; 2 failing and 2 passing executions agree, 9 made
            to check it

  turn  transfer               withdraw                   late
     2                         waits for database, held                              test_text.py+7
     3                                                    waits for queue            test_text.py+11
>    4                                                    queue arrives, waits for   test_text.py+11
                                                          database
     5                                                    database arrives, returns  test_text.py+7
>    7                         database arrives after a                              test_text.py+7
                               hold, returns
     9  raises AssertionError                                                        test_text.py+15

  passes    - hold withdraw/database
            there withdraw/database arrives in turn 3, before late/queue arrives in turn 5

  replay: harness replay TOKEN
  export: harness export TOKEN"""

CROWD = """\
  turn  tasks          what happens
     2  .2...........  work: waits for ca..  test_text.py+5
     3  ..3..........  work#2: waits for ..  test_text.py+5
     4  ...4.........  work#3: waits for ..  test_text.py+5"""

FAILED_9615 = """\
issue_9615 on remote: completed_steps_restored is violated (rung exact)
  expected  a step whose completion was visible before its run ended is not executed again on resume
  got       done(7) completed in run 0 (turn 3) and was executed again in run 1 (turn N); its
            done/save#1 was cancelled before its commit (turn 10)
  found     after 1 execution by sweep; explained with 70 executions
  schedule  default order
  minimal   it fails in default order, without a deviation
  decides   fails when order_flow/flaky raises RuntimeError  scenarios/issue_9615.py:25
                before done/save#1 commits (run 0)  agent_framework/_workflows/_functional.py:N
            passes when it is the other way round; 6 failing and 1 passing executions agree, 11 made
            to check it
"""


@pytest.fixture(scope="module")
def lost():
    """Return the explanation of a lost update."""
    return harness.explain(transfer, "hold withdraw/database")


@pytest.fixture(scope="module")
def last():
    """Return the explanation of a failure among twelve tasks."""
    return harness.explain(crowd, "hold work/call")


def test_a_lost_update_is_a_table_of_two_tasks(lost):
    """What was expected, what decides, who did what, and what to change."""
    assert report(lost) == LOST


def test_many_tasks_have_a_mark_each_and_say_their_name(last):
    """A column per task, one character wide, where there is no room for more."""
    assert CROWD in report(last, width=60)
    assert "decides   no ordering of two events, nor two or three of" in report(last, width=60)


@pytest.mark.parametrize("width", [60, 80, 100, 140, 250])
def test_a_report_fits(lost, last, width):
    """At most 40 lines, none wider than the terminal but those that are to be copied."""
    for explanation in (lost, last, replace(last, violation=replace(last.violation, message="word " * 900))):
        lines = plain(failure_report(explanation, replay="-", export="-", width=width)).splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("minimal", "text"),
    [
        (Minimal(1, complete=True, tried=12), "no schedule with fewer than 1 deviation fails (12 tried)"),
        (
            Minimal(0, complete=False, tried=3, reason="about 900 schedules have 1"),
            "others are not checked: about 900 schedules have 1",
        ),
    ],
)
def test_what_is_known_below_is_said(lost, minimal, text):
    """Checked, or not checked and why."""
    assert f"\n  minimal   {text}\n" in report(replace(lost, minimal=minimal))


@pytest.mark.slow
def test_9615_says_what_a_maintainer_asks():
    """Which promise broke, how, when it does, and with which source lines."""
    target = scenario_target(find_scenario("issue_9615", folder=SCENARIOS), "remote", shapes=False)
    found = search(target, phases=make_phases(rung=target.rung), budget=5).counterexample
    text = report(explanation_of(target, found, title="issue_9615 on remote"))
    # The framework's lines depend on its release, and the turns of the sweep on Python (see docs/design.md).
    text = re.sub(r"_functional\.py:\d+", "_functional.py:N", text)
    assert re.sub(r"in run 1 \(turn \d+\)", "in run 1 (turn N)", text).startswith(FAILED_9615)


def long_names():
    """Return an execution of tasks whose names are longer than what they do."""
    lanes = tuple(Lane(f"main/deliver_to_every_runner_of_the_edge/part#{number}", f"p{number}") for number in range(9))
    rows = [Row(0, 0.0, 0, "fact", "", "run 0 started", "", 5, run=0)]
    for number in range(9):
        rows.append(Row(number, 0.0, number, "turn", "", "returns", "/x/deliver.py:1", 8))
        rows.append(Row(number, 0.0, number, "fact", "", f"part {number} completes", "/x/deliver.py:1", 2, run=0))
    rows.append(Row(9, 0.0, 0, "turn", "", "raises ValueError", "/x/main.py:2", 0))
    rows.append(Row(9, 0.0, 0, "fact", "", "save#1 commits", "/x/main.py:2", 0, run=0))
    rows.append(Row(9, 0.0, 0, "fact", "", "run 0 ended", "/x/main.py:2", 5, run=0))
    return Timeline(
        Schedule(), "default order", Rung.EXACT, Ending("raised"), True, lanes, tuple(rows), broken=len(rows) - 3
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_what_happens_is_shown_however_long_the_names_of_tasks_are(width):
    """Names are cut, at their beginning; what a turn came to stands behind what was noted in its course."""
    lines = plain(table(long_names(), width=width, limit=30)).splitlines()
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert all(f"part {number} completes" in text for number in range(9))
    ends = [next(index for index, line in enumerate(lines) if said in line) for said in ("commits", "ended", "raises")]
    assert ends == sorted(ends)


def test_a_cell_that_is_cut_ends_with_a_whole_text():
    """And headings stay above their columns."""
    names = ("first", "second_of_the_tasks_with_a_long_name", "third_of_the_tasks_with_a_long_name", "fourth")
    lanes = tuple(Lane(name, name) for name in names)
    said = ("it begins to charge", "it charges the customer", "it completes", "it returns")
    rows = tuple(Row(lane, 0.0, lane, "fact", "", text, "/x/a.py:1", 2, run=0) for lane in range(4) for text in said)
    timeline = Timeline(Schedule(), "", Rung.EXACT, Ending("returned"), True, lanes, rows)
    head, *lines = plain(table(timeline, width=100, limit=30)).splitlines()
    assert all(line.partition("  /x")[0].rstrip()[-1] not in ",;" for line in lines)
    assert head.index("fourth") == next(line.index("it begins") for line in reversed(lines) if "it begins" in line)


def test_what_comes_from_outside_stands_behind_the_turn_that_was_over():
    """A crash falls between two turns, and is no part of the one before it."""
    rows = (
        Row(1, 0.0, 0, "turn", "", "waits for network", "/x/a.py:1", 6),
        Row(1, 0.0, 0, "fact", "", "put#1 is called", "/x/a.py:1", 5, run=0),
        Row(1, 0.0, 0, "fact", "", "run 0 ended (crashed)", "", 5, run=0),
    )
    one = Timeline(Schedule(), "", Rung.EXACT, Ending("returned"), True, (Lane("main", "main"),), rows)
    lines = plain(table(one, width=100, limit=30)).splitlines()[1:]
    assert [line.partition("  /x")[0].strip() for line in lines] == [
        "1  put#1 is called, waits for network",
        "1  -- run 0 ended (crashed) --",
    ]
