"""An execution is a function of its schedule; what is not is reported, with the first turn that differs."""

import asyncio
import datetime
import itertools
import os
import subprocess
import sys
import threading
import time
import uuid
import zlib
from pathlib import Path

import pytest

import harness
from harness import Rung, execute
from harness.model.schedule import parse_token
from harness.runtime.execution import open_session
from harness.search.determinism import execute_twice
from harness.search.portfolio import search
from harness.search.recording import Recorded, Replay
from harness.search.sweep import Sweep
from harness.search.target import Target
from soundness.compare import SCHEDULERS, run_controlled, sample
from soundness.digests import digest
from soundness.programs import write

HERE = Path(__file__).parent
PROGRAMS = 100
# Of the first 300 portable programs, on every supported Python; see ``digests``.
PORTABLE = "96c1312a"


@pytest.fixture
def session():
    with open_session() as session:
        yield session


def run_twice_and_replay(spec, name, session):
    """Return the traces of two executions of one seed and of the replay of its token."""
    traces = []
    discipline = SCHEDULERS[name].discipline
    options = {"session": session, "rung": Rung.LATENCY, "discipline": discipline, "tracing": True}
    for _ in range(2):
        seen, execution = run_controlled(spec, Recorded(sample(1, name)), **options)
        traces.append((seen, execution.trace))
    replay = Replay(parse_token(execution.schedule.token()))
    seen, again = run_controlled(spec, replay, **options)
    assert replay.diverged is None
    return [*traces, (seen, again.trace)]


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_two_executions_and_a_replay_are_identical(session, name):
    """Every turn, every time, every event."""
    for seed in range(PROGRAMS):
        first, second, third = run_twice_and_replay(write(seed), name, session)
        assert first == second == third, seed


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_ten_thousand_programs_run_twice_and_replay_identically(session, name):
    """Every turn, every time, every event."""
    for seed in range(10_000):
        first, second, third = run_twice_and_replay(write(seed), name, session)
        assert first == second == third, seed


def test_one_plan_gives_one_trace_in_a_hundred_executions(session):
    """Whatever ran before."""
    assert len({digest(3, session=session) for _ in range(100)}) == 1


@pytest.mark.long
def test_one_plan_gives_one_trace_in_a_thousand_executions(session):
    """Whatever ran before."""
    assert len({digest(seed, session=session) for _ in range(1000) for seed in (3,)}) == 1


def printed(*args, hash_seed):
    """Return what another process prints for the same programs."""
    path = os.pathsep.join([str(HERE.parent), str(HERE.parents[1])])
    done = subprocess.run(
        [sys.executable, "-m", "soundness.digests", *args],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_other_processes_and_hash_seeds_give_the_same_traces(session):
    """Three processes with three hash seeds, and this one."""
    here = [f"{number} {digest(number, session=session)}" for number in range(40)]
    assert [printed("0", "40", hash_seed=seed) for seed in ("0", "1", "4242")] == [here] * 3


def test_every_python_gives_the_same_events(session):
    """The digest was recorded on 3.11."""
    lines = [digest(number, session=session, tracing=False, portable=True) for number in range(300)]
    assert f"{zlib.crc32(' '.join(lines).encode()):08x}" == PORTABLE


# -- planted nondeterminism ----------------------------------------------------------------------------------

kept = []
counter = itertools.count()


class Plain:
    """Hashes by address."""


async def take_turns(number):
    for _ in range(number):
        await asyncio.sleep(0)


async def an_address():
    kept.extend(Plain() for _ in range(50))
    await take_turns((id(kept[-1]) >> 4) % 1009)


async def a_set_of_objects():
    kept.extend(Plain() for _ in range(50))
    members = kept[-20:]
    await asyncio.gather(*(take_turns(members.index(member)) for member in set(members)))


async def a_counter_that_survives():
    await take_turns(next(counter))


async def the_time_in_nanoseconds():
    await take_turns(time.monotonic_ns() % 1009)


async def the_date():
    await take_turns(datetime.datetime.now().microsecond % 1009)


async def a_thread():
    done = []
    thread = threading.Thread(target=lambda: (time.sleep(0.002), done.append(1)))
    thread.start()
    while not done:
        await asyncio.sleep(0)
    thread.join()


async def what_is_seeded():
    await take_turns(uuid.uuid4().int % 1009)
    await take_turns(os.urandom(1)[0])


async def points_in_any_order():
    await asyncio.gather(*(harness.point(name) for name in "abc"))


PLANTED = [an_address, a_set_of_objects, a_counter_that_survives, the_time_in_nanoseconds, the_date, a_thread]
CLEAN = [what_is_seeded, points_in_any_order]


@pytest.mark.parametrize("program", PLANTED, ids=lambda program: program.__name__)
def test_planted_nondeterminism_is_reported_though_nothing_fails(program):
    """With the first turn that differs."""
    result = search(Target(program.__name__, program), phases=[Sweep(rung=Rung.EXACT)], budget=4)
    assert result.verdict == "nondeterministic"
    assert result.counterexample.violation.oracle == "determinism"
    assert result.counterexample.difference.startswith("turn ")
    assert result.counterexample.difference in result.counterexample.violation.message


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.__name__)
def test_what_is_seeded_is_the_same_each_time(program):
    """And is not reported."""
    result = search(Target(program.__name__, program), phases=[Sweep(rung=Rung.EXACT)], budget=20)
    assert result.verdict == "none-found"


def test_any_plan_can_be_executed_twice():
    """Not only the default schedule."""
    with Target("points", points_in_any_order).open() as runner:
        first, second, found = execute_twice(runner, {1: 1})
    assert (first.trace, found) == (second.trace, "")
    with Target("counter", a_counter_that_survives).open() as runner:
        assert " | " in execute_twice(runner, {0: 1})[2]


def test_an_execution_does_not_see_the_ones_before_it():
    """Alone in its session, or after many others."""
    spec = write(5)
    with open_session() as session:
        alone = run_controlled(spec, session=session, tracing=True)
    with open_session() as session:
        for seed in range(20):
            run_controlled(write(seed), session=session)
        later = run_controlled(spec, session=session, tracing=True)
    assert (alone[0], alone[1].trace) == (later[0], later[1].trace)
    assert execute(points_in_any_order).ending.kind == "returned"
