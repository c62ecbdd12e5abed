"""Each moment at which something may happen to a run is tried, however the run ends: else nothing is certified.

How many moments there are is learned by executing, so what an execution does not tell is never tried.
"""

import asyncio
import random

import pytest

import harness
from harness import Rung
from harness.adapters.runs import Run, Runs
from harness.schedulers.ranks import Ranks
from harness.search.exhaustive import Exploration
from harness.search.outcomes import outcome_of
from harness.search.prove import prove
from harness.search.target import Target

MODES = ("fingerprint", "certain")


def runs_of(body, *, faults):
    """Return what runs ``body(run, see)``; ``await see()`` shows an event and says whether the consumer left."""

    async def consume(run, leave):
        async def see():
            run.events.append(len(run.events))
            await asyncio.sleep(0)
            if leave is None or len(run.events) != leave.after:
                return False
            run.ending = leave.how
            return True

        await body(run, see)

    return Runs(consume=consume, faults=faults)


def first_run():
    """Return a run to begin with."""
    return Run(0, "run", None, "message")


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_that_is_always_cancelled_is_left_at_each_event(mode):
    """The program itself cancels the run, so that no execution sees the stream to its end."""

    async def program():
        left = []

        async def body(_, see):
            for _ in range(3):
                if await see():
                    left.append("left")
                    return
            await asyncio.get_running_loop().create_future()

        task = asyncio.ensure_future(runs_of(body, faults=("drop",)).go(first_run()))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert not left

    proof = prove(Target("cancelled", program, rung=Rung.EXACT), mode=mode, budget=300)
    assert proof.verdict == "violation"


@pytest.mark.parametrize("mode", MODES)
def test_events_that_only_a_cancelled_run_shows_are_tried(mode):
    """A clean-up that streams on: left there, it does not let go of what it holds."""

    async def program():
        held = []

        async def body(_, see):
            held.append(1)
            try:
                await harness.point("work")
            except asyncio.CancelledError:
                for _ in range(2):
                    if await see():
                        return
                raise
            finally:
                if run.ending != "dropped":
                    held.clear()

        run = first_run()
        await runs_of(body, faults=("cancel", "drop")).go(run)
        assert not held

    proof = prove(Target("clean-up", program, rung=Rung.EXACT), mode=mode, budget=2000)
    assert proof.verdict == "violation"


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_outlives_the_program_can_be_cancelled(mode):
    """Nobody waits for it, and after it began there is no choice at which its moments could be counted."""

    async def program():
        cancelled = []

        async def body(*_):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancelled.append(1)
                raise

        task = asyncio.ensure_future(runs_of(body, faults=("cancel",)).go(first_run()))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not cancelled
        return task

    proof = prove(Target("background", program, rung=Rung.EXACT), mode=mode, budget=300)
    assert proof.verdict == "violation"


# -- generated programs -----------------------------------------------------------------------------

FAULTS = (("stream",), ("drop",), ("cancel",), ("crash",), ("timeout",), ("close", "cancel"), ("drop", "crash"))


def generate(seed):
    """Return a program with a run to which something may happen; it fails with all that it saw."""
    source = random.Random(seed)
    faults = source.choice(FAULTS)
    verbs = source.choices(("point", "yield", "event", "event", "flag", "event if flag"), k=source.randint(1, 4))
    cleanup = source.choices(("point", "event", "flag"), k=source.randint(0, 2))
    beside = source.choices(("point", "flag", "cancel"), k=source.randint(0, 2))
    shape = source.choice(("awaited", "twice", "background", "cancelled"))

    async def program():
        seen, flags, tasks = [], [], []

        async def play(name, verb, see=None):
            if verb == "point":
                await harness.point(name)
            elif verb == "flag":
                flags.append(name)
            elif verb == "cancel":
                tasks[0].cancel()
            elif verb == "event" or (flags and verb == "event if flag"):
                return await see()
            await asyncio.sleep(0)
            return False

        async def body(run, see):
            try:
                for place, verb in enumerate(verbs):
                    if await play(f"{run.number}.{place}", verb, see):
                        seen.append(f"{run.ending} {len(run.events)} {len(flags)}")
                        return
            except asyncio.CancelledError:
                seen.append(f"cancelled {len(run.events)}")
                for place, verb in enumerate(cleanup):
                    if await play(f"{run.number} clean-up {place}", verb, see):
                        return
                raise
            seen.append("done")

        runs = runs_of(body, faults=faults)
        tasks.append(asyncio.ensure_future(runs.go(first_run())))
        for place, verb in enumerate(beside):
            await play(f"beside {place}", verb)
        if shape == "cancelled":
            tasks[0].cancel()
        if shape != "background":
            await asyncio.wait(tasks)
        if shape == "twice":
            await runs.go(Run(1, "run", None, "message"))
        raise AssertionError(f"{seen} {[run.ending for run in runs.all]} {flags}")

    return program


def explored(program, *, mode, rung, budget):
    """Return all outcomes, or None when there are too many schedules."""
    target = Target("generated", program, rung=rung)
    exploration = Exploration(target, mode=mode)
    with target.open() as runner:
        exploration.run(runner, budget=budget, until_s=float("inf"))
    assert not exploration.diverged
    return None if exploration.pending or exploration.limits else set(exploration.failing)


def differ(seed, rung, *, executions):
    """Return what random schedules or the mode ``certain`` meet and the other does not; None when it is too much."""
    program = generate(seed)
    found = explored(program, mode="fingerprint", rung=rung, budget=400)
    if found is None:
        return None
    every = explored(program, mode="certain", rung=rung, budget=600)
    sampled = set()
    with Target("generated", program, rung=rung).open() as runner:
        for number in range(executions):
            sampled.update(outcome_of(runner.run(Ranks(random.Random(number)), rung=rung)))
    return (sampled - found) | (found ^ (found if every is None else every))


@pytest.mark.slow
def test_all_that_can_happen_to_a_run_is_met():
    """By both modes, and as much as by random schedules."""
    compared = {seed: differ(seed, list(Rung)[seed % 3], executions=60) for seed in range(15)}
    assert {seed: found for seed, found in compared.items() if found} == {}
    assert len([found for found in compared.values() if found is not None]) >= 8


@pytest.mark.long
def test_all_that_can_happen_to_a_run_is_met_in_many_programs():
    """The same for more programs and schedules."""
    compared = {seed: differ(seed, list(Rung)[seed % 3], executions=200) for seed in range(100, 300)}
    assert {seed: found for seed, found in compared.items() if found} == {}
