"""Each scheduler keeps the guarantee that its docstring states."""

import asyncio
import itertools
import math
import random

import pytest

from harness import execute
from harness.adapters.portfolio import load_scheduler
from harness.model.history import History
from harness.model.registry import load_plugin
from harness.runtime.execution import open_session
from harness.schedulers.delay import Plugin as Delay
from harness.schedulers.pct import Pct
from harness.schedulers.pos import Pos
from harness.schedulers.surw import Surw
from harness.schedulers.trio_shuffle import TrioShuffle
from harness.schedulers.uniform import Uniform
from harness.search.learning import Watched
from tests.unit.schedulers.interleavings import SETTINGS, chi_squared, grid, sample, tasks_of, turns


def orders(*counts):
    """Return every interleaving of tasks of that many turns."""
    if not any(counts):
        return [()]
    found = []
    for index, left in enumerate(counts):
        if left:
            found += [(index, *order) for order in orders(*counts[:index], left - 1, *counts[index + 1 :])]
    return found


def limit(freedom):
    """Return what a chi-squared statistic exceeds once in about 10,000 times."""
    return freedom + 3.9 * math.sqrt(2 * freedom)


@pytest.mark.slow
def test_surw_is_uniform_over_interleavings():
    """Two tasks of five turns: each of the 252 comes up about 40 times in 10,000."""
    source = random.Random(1)
    counts = sample(grid(2, 5), lambda: Surw(source, left={"work": 5, "work#2": 5}), 10_000)
    assert len(counts) == 252
    assert chi_squared(counts, dict.fromkeys(orders(5, 5), 10_000 / 252)) < limit(251)


@pytest.mark.slow
def test_surw_learns_how_many_turns_each_task_has():
    """Tasks of different lengths: uniform after one execution was watched, with every turn interesting."""
    program = tasks_of(turns(4), turns(2))
    history = History()
    with open_session() as session:
        watched = Watched(Uniform(random.Random(0)))
        execute(program, watched, settings=SETTINGS, session=session)
    history.learn(watched.steps, points=watched.points)
    left = {}
    for (path, _), count in history.counts.items():
        left[path] = left.get(path, 0) + count
    left.pop("")  # the root makes the tasks before anything can be chosen
    assert left == {"work": 4, "work#2": 2}
    source = random.Random(2)
    counts = sample(program, lambda: Surw(source, left=left), 3_000)
    assert chi_squared(counts, dict.fromkeys(orders(4, 2), 3_000 / 15)) < limit(14)


async def _two_accesses_each():
    """Let two tasks log in the turns after their second and fourth ``await``."""
    log = []

    async def work(index):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.append(index)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.append(index)

    for task in [asyncio.create_task(work(index)) for index in range(2)]:
        await task
    return log


@pytest.mark.slow
def test_surw_is_uniform_over_the_interesting_turns():
    """Those that were declared; the other turns do not bias their order."""
    watched = Watched(Uniform(random.Random(0)))
    history, source = History(), random.Random(7)
    with open_session() as session:
        execute(_two_accesses_each, watched, settings=SETTINGS, session=session)
    _, _, second, _, fourth = sorted({step.place for step in watched.steps if step.path == "work"})
    declared = [step._replace(interesting=step.place in (second, fourth)) for step in watched.steps]
    history.learn(declared, points=watched.points)
    counts = sample(_two_accesses_each, lambda: load_scheduler("surw").make(source, history), 1_200)
    assert chi_squared(counts, dict.fromkeys(orders(2, 2), 200)) < limit(5)


@pytest.mark.slow
def test_a_random_walk_is_uniform_over_choices_and_not_over_interleavings():
    """Each interleaving has probability 2^-c for c choices between two tasks."""
    source = random.Random(3)
    counts = sample(grid(2, 5), lambda: Uniform(source), 10_000)
    expected = {}
    for order in orders(5, 5):
        last = order[-1]
        choices = max(at for at, task in enumerate(order) if task != last) + 1  # until one task is left
        expected[order] = 10_000 * 2.0**-choices
    assert sum(expected.values()) == pytest.approx(10_000)
    assert chi_squared(counts, expected) < limit(251)
    assert chi_squared(counts, dict.fromkeys(expected, 10_000 / 252)) > 10 * limit(251)


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", [Pos, TrioShuffle])
def test_turns_that_are_ready_together_run_in_any_order(scheduler):
    """Four tasks of one turn: 24 orders, equally likely."""
    source = random.Random(4)
    counts = sample(grid(4, 1), lambda: scheduler(source), 4_800)
    assert chi_squared(counts, dict.fromkeys(itertools.permutations(range(4)), 200)) < limit(23)


@pytest.mark.slow
def test_pos_gives_every_order_its_share():
    """At least 1/e! for e turns: 1/720 for two tasks of three turns."""
    source = random.Random(5)
    counts = sample(grid(2, 3), lambda: Pos(source), 7_200)
    assert len(counts) == 20
    assert min(counts.values()) >= 10 - 3 * math.sqrt(10)


async def _opens_a_window(log, index):
    """Eight turns; the window is open between the fifth and the sixth."""
    for number in range(8):
        log.append(number)
        yield


async def _looks_once(log, index):
    log.append("first")
    yield


async def _looks_twice(log, index):
    log.append("first")
    yield
    log.append("second")


def _depth_two(log):
    """A single switch at one of the turns decides."""
    return log.index("first") == log.index(4) + 1


def _depth_three(log):
    """Into the window, and out again before the second look."""
    return _depth_two(log) and log.index("second") > log.index(6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "bug", "depth"), [(_looks_once, _depth_two, 2), (_looks_twice, _depth_three, 3)], ids=["two", "three"]
)
def test_pct_meets_its_bound(other, bug, depth):
    """A bug of depth d in at least one of n k^(d-1) executions."""
    program = tasks_of(_opens_a_window, other)
    history = History()
    with open_session() as session:
        for seed in range(20):
            watched = Watched(Pct(random.Random(seed), depth=1, points=1))
            execute(program, watched, settings=SETTINGS, session=session)
            history.learn(watched.steps, points=watched.points)
    points = history.points
    assert points >= 8
    source = random.Random(6)
    counts = sample(program, lambda: Pct(source, depth=depth, points=points), 4_000)
    found = sum(count for order, count in counts.items() if bug(list(order)))
    expected = 4_000 / (2 * points ** (depth - 1))
    assert found >= expected - 3 * math.sqrt(expected)


def test_delay_bounding_deepens_until_nothing_is_left():
    """All 20 interleavings of two tasks of three turns, each once, fewest delays first."""
    history, plugin, delays, seen = History(), Delay(), [], []
    with open_session() as session:
        while True:
            scheduler = plugin.make(random.Random(0), history)
            if history.exhausted:
                break
            execution = execute(grid(2, 3), scheduler, settings=SETTINGS, session=session)
            delays.append(sum(decision.value for decision in execution.schedule.decisions if decision.kind == "lane"))
            if not any(decision.kind == "order" for decision in execution.schedule.decisions):
                seen.append(tuple(execution.ending.value))
    assert sorted(seen) == sorted(orders(3, 3))
    assert seen[0] == (0, 1, 0, 1, 0, 1)


def test_a_bound_of_delays_is_kept():
    """``delay-1`` ends after the default schedule and one delay at each choice point."""
    history, plugin, most = History(), load_plugin("harness.schedulers", name="delay", kind="scheduler"), 0
    plugin = plugin.with_parameter(1)
    executions = 0
    with open_session() as session:
        while not history.exhausted:
            execution = execute(grid(2, 3), plugin.make(random.Random(0), history), settings=SETTINGS, session=session)
            most = max(most, sum(decision.value for decision in execution.schedule.decisions))
            executions += 1
    assert most == 1
    assert executions < 10
