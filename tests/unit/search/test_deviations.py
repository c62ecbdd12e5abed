"""Every deviation of a schedule shows: in a row of the timeline, in the table and with a mark on the page."""

import asyncio
from pathlib import Path

import pytest

import harness
from harness.adapters.loading import find_scenario
from harness.adapters.targets import scenario_target
from harness.model.rung import Rung
from harness.report.lines import plain
from harness.report.table import table
from harness.report.timeline.columns import columns_of
from harness.search.explain import plain_timeline, witnessed_timeline
from harness.search.readable import parse_readable
from harness.search.recording import Planned
from harness.search.target import Target
from harness.search.timeline import timeline_of
from harness.search.witness import witnessed

SCENARIOS = Path(__file__).parents[3] / "scenarios"


async def program():
    """Meet a choice of each kind, inside and outside of turns."""
    loop = asyncio.get_running_loop()
    for _ in range(loop.choose("program", ("1", "2"), subject="rounds")):
        await harness.point("round")

    async def work(name):
        if harness.fault(f"{name}.fails"):
            await harness.point("repair")
        for _ in range(loop.choose("shape", ("plain", "slow"), subject=name)):
            await harness.point("latency")
        await harness.point(name)
        await asyncio.sleep(0)

    tasks = {asyncio.ensure_future(work(name)) for name in ("one", "two")}
    await asyncio.wait(tasks)


def shown(timeline):
    """Return of each deviation the kind and the text of its row."""
    return [(timeline.rows[index].kind, timeline.rows[index].text) for index in timeline.deviations]


def in_words(runner, words):
    """Return the timeline of a schedule in words as it was watched, and as it was traced."""
    readable = parse_readable(words)
    execution, witness = witnessed(runner, readable)
    readable.check()
    return timeline_of(execution, witness, text=words, oracle="none"), plain_timeline(execution, text=words)


def check(timeline):
    """Each deviation has a row, in the table and with a mark."""
    assert len(timeline.deviations) == timeline.schedule.deviations
    assert min(timeline.deviations, default=0) >= 0
    text = plain(table(timeline, width=200, limit=90))
    marks = {row: column.marks for column in columns_of(timeline) for row in (column.head, *column.facts)}
    for index in timeline.deviations:
        assert marks[index], timeline.rows[index]
        assert len(set(marks[index])) == len(marks[index])
        assert timeline.rows[index].text in " ".join(text.split()) or timeline.rows[index].kind == "turn"


@pytest.mark.parametrize("discipline", ["ranks", "indices", "turns"])
def test_every_single_deviation_has_a_row(discipline):
    """Each choice of a program, answered with each of its options, watched and as it was traced."""
    count = 0
    with Target("program", program).open() as runner:
        for index in range(40):
            for value in (1, 2):
                rung = Rung.RELAXED
                execution = runner.run(Planned({index: value}), tracing=True, discipline=discipline, rung=rung)
                if not execution.schedule.deviations:
                    continue
                check(witnessed_timeline(runner, execution.schedule, oracle="assertion"))
                check(plain_timeline(execution, text=""))
                count += 1
    assert count >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "storage", "words", "rows"),
    [
        ("issue_9615", "memory", "save waits create-task", [("choice", "save waits create-task")]),
        ("save_error", "memory", "order_flow/save#1 raises before commit", None),
        ("cancel_in_save", "remote", "run 0 cancelled at moment 2", [("fact", "run 0 cancelled")]),
        ("closed_stream", "memory", "stream of run 0 closed at moment 4", None),
        ("graph_resume", "memory", "run 0 crashed at moment 9", [("fact", "run 0 ended (crashed)")]),
        ("graph_resume", "memory", "run 0 timed out at moment 9", [("fact", "run 0 timed out")]),
        ("graph_resume", "memory", "checkpoint of run 0 second latest; instance of run 0 same instance", None),
        (
            "cancel_in_save",
            "remote",
            "run 0 cancelled twice at moment 2; second cancel of run 0 2 moments later",
            [("fact", "run 0 cancelled"), ("choice", "second cancel of run 0 2 moments later")],
        ),
    ],
)
def test_what_happens_to_runs_and_saves_has_a_row(scenario, storage, words, rows):
    """Where it happens, and what leaves no fact where it was chosen; in the words of the schedule."""
    faults = ("cancel", "crash", "timeout", "storage", "stream", "resume")
    found = find_scenario(scenario, folder=SCENARIOS)
    if scenario != "graph_resume":
        faults = found.faults or faults
    target = scenario_target(found, storage, shapes=" waits " in words, faults=faults)
    with target.open() as runner:
        timeline, plain_one = in_words(runner, words)
        runner.run(None)  # what a crash left behind goes while nobody hears it
    check(timeline)
    assert shown(timeline) == (rows or [("choice", clause) for clause in words.split("; ")])
    check(plain_one)
