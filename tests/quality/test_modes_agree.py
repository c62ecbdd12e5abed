"""Pruning loses no outcome: on generated programs both modes meet exactly the same ones.

Each program always fails, with its result as the message, so that every distinct result is a failing outcome.
"""

import asyncio
import random

import pytest

import harness
from harness import Rung
from harness.schedulers.ranks import Ranks
from harness.search.exhaustive import Exploration
from harness.search.outcomes import outcome_of
from harness.search.target import Target

VERBS = ("point", "yield", "note", "sleep", "lock", "cancel", "timeout", "event", "set", "queue", "wait")


def generate(seed):
    """Return a program of two or three tasks of up to three verbs each."""
    source = random.Random(seed)
    tasks = [[source.choice(VERBS) for _ in range(source.randint(1, 3))] for _ in range(2 if seed % 3 else 3)]
    if len(tasks) == 3:
        tasks = [verbs[:2] for verbs in tasks]

    async def program():
        seen, alive = [], []
        lock, event, queue = asyncio.Lock(), asyncio.Event(), asyncio.Queue()

        async def play(name, verbs):
            try:
                for place, verb in enumerate(verbs):
                    if verb == "point":
                        await harness.point(f"{name}{place}")
                    elif verb == "yield":
                        await asyncio.sleep(0)
                    elif verb == "sleep":
                        await asyncio.sleep(0.01 * (place + 1))
                    elif verb == "lock":
                        async with lock:
                            seen.append(f"{name} locks")
                            await asyncio.sleep(0)
                    elif verb == "cancel":
                        alive[(name + 1) % len(alive)].cancel()
                    elif verb == "timeout":
                        try:
                            async with asyncio.timeout(0.015):
                                await harness.point(f"{name}{place}")
                        except TimeoutError:
                            seen.append(f"{name} late")
                    elif verb == "event":
                        seen.append(f"{name} {'set' if event.is_set() else 'unset'}")
                        event.set()
                    elif verb == "set":
                        seen.append(f"{name} {len(set(alive))} {sum(task.done() for task in set(alive))}")
                    elif verb == "queue":
                        queue.put_nowait(name)
                        seen.append(f"{name} got {await queue.get()}")
                    elif verb == "wait":
                        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0)) for _ in range(1 + place)])
                        seen.append(f"{name} waited")
                    else:
                        seen.append(name)
            except asyncio.CancelledError:
                seen.append(f"{name} cancelled")
                raise

        alive += [asyncio.ensure_future(play(name, verbs)) for name, verbs in enumerate(tasks)]
        ends = await asyncio.gather(*alive, return_exceptions=True)
        raise AssertionError(f"{seen} {[type(end).__name__ for end in ends]}")

    return program, tasks


def outcomes(program, *, mode, rung, budget):
    """Return every distinct outcome and the exploration."""
    target = Target("generated", program, rung=rung)
    exploration = Exploration(target, mode=mode)
    with target.open() as runner:
        exploration.run(runner, budget=budget, until_s=float("inf"))
    return set(exploration.failing), exploration


def compare(seed, rung, *, budget=3000):
    """Compare both modes; return None when the space is too large, or how many executions each took."""
    program, tasks = generate(seed)
    every, certain = outcomes(program, mode="certain", rung=rung, budget=budget)
    if certain.pending or certain.limits:
        return None
    found, merged = outcomes(program, mode="fingerprint", rung=rung, budget=budget)
    assert not merged.pending
    assert found == every, f"seed {seed}, {rung.label}: {tasks}"
    assert merged.executions <= certain.executions
    return certain.executions, merged.executions


@pytest.mark.slow
@pytest.mark.parametrize("rung", list(Rung))
def test_both_modes_meet_the_same_outcomes(rung):
    """Forty programs per rung."""
    compared = [found for seed in range(40) if (found := compare(seed, rung, budget=600)) is not None]
    assert len(compared) >= 20
    assert sum(merged for _, merged in compared) < sum(every for every, _ in compared)


def sampled(program, *, rung, executions):
    """Return the outcomes of random schedules in the ``ranks`` discipline."""
    target, found = Target("generated", program, rung=rung), set()
    with target.open() as runner:
        for seed in range(executions):
            found.update(outcome_of(runner.run(Ranks(random.Random(seed)), rung=rung)))
    return found


def compare_with_ranks(seed, rung, *, executions=150, budget=3000):
    """Return the outcomes that random ranks meet and the exhaustive search does not; None when it is not complete."""
    program, _ = generate(seed)
    found, exploration = outcomes(program, mode="fingerprint", rung=rung, budget=budget)
    if exploration.pending or exploration.limits:
        return None
    return sampled(program, rung=rung, executions=executions) - found


@pytest.mark.long
@pytest.mark.parametrize("rung", list(Rung))
def test_no_random_schedule_meets_more_than_the_exhaustive_search(rung):
    """Holds, early arrivals and all: the space of a proof is that of a search."""
    missed = [compare_with_ranks(seed, rung, budget=600) for seed in range(25)]
    assert [found for found in missed if found] == []
    assert len([found for found in missed if found is not None]) >= 15
