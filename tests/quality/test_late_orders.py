"""An order that is chosen when a set is looked at misses nothing that one chosen at the start would show.

The reference takes plain sets and counts every hash of a task, whatever it was for: it tries all orders of sets.
"""

import asyncio
import random

import pytest

import harness
from harness import Rung
from harness.runtime import identity
from harness.runtime.task_sets import TaskSet
from harness.search.exhaustive import Exploration
from harness.search.target import Target

FORMS = ("live", "every", "tested", "any", "spared", "gathered", "waited", "first", "group")
VERBS = ("point", "yield", "note", "fail")


def generate(seed, make_set):
    """Return a program in which one task looks at a set of the others in some of the forms that are recognised."""
    source = random.Random(seed)
    plays = [[source.choice(VERBS) for _ in range(source.randint(1, 2))] for _ in range(source.randint(2, 3))]
    forms = [source.choice(FORMS[:-1]) for _ in range(2)] if seed % 4 else ["group"]

    async def program():
        seen = []

        async def play(name, verbs):
            try:
                for place, verb in enumerate(verbs):
                    if verb == "point":
                        await harness.point(f"{name}{place}")
                    elif verb == "yield":
                        await asyncio.sleep(0)
                    elif verb == "fail":
                        raise ValueError(name)
                    seen.append(f"{name}{place}")
            except asyncio.CancelledError:
                seen.append(f"{name} cancelled")
                raise

        if forms == ["group"]:
            try:
                async with asyncio.TaskGroup() as group:
                    for name, verbs in enumerate(plays):
                        group.create_task(play(name, verbs))
            except BaseExceptionGroup as error:
                seen.append(repr(error))
            raise AssertionError(f"{seen}")

        tasks = [asyncio.ensure_future(play(name, verbs)) for name, verbs in enumerate(plays)]
        kept = make_set()
        for task in tasks:
            kept.add(task)
        for form in forms:
            await harness.point("look")
            await look(form, kept, tasks, seen)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        raise AssertionError(f"{seen} {[type(end).__name__ for end in ends]}")

    return program, (plays, forms)


async def look(form, kept, tasks, seen):
    """Do something with the tasks in ``kept``."""
    me = asyncio.current_task()
    if form == "live":
        for task in kept:
            if not task.done():
                seen.append(f"cancel {tasks.index(task)}")
                task.cancel()
    elif form == "every":
        seen.append([tasks.index(task) for task in kept])
    elif form == "tested":
        pending = [task for task in kept if task is not me and not task.done()]
        for task in pending[:1]:
            task.cancel()
    elif form == "any":
        seen.append(any(task is not me and not task.done() for task in kept))
    elif form == "spared":
        spared = list(tasks[:1])
        pending = [task for task in kept if not task.done() and task not in spared]
        seen.append([tasks.index(task) for task in pending])
    elif form == "gathered":
        left = [task for task in kept if task is not me]
        await asyncio.gather(*left, return_exceptions=True)
    elif form == "waited":
        await asyncio.wait(tasks)
    else:
        next(iter(kept)).cancel()


def outcomes(program, *, mode, rung, budget=400):
    """Return every distinct outcome, or None when the space is too large, and the number of executions."""
    target = Target("generated", program, rung=rung)
    exploration = Exploration(target, mode=mode)
    with target.open() as runner:
        exploration.run(runner, budget=budget, until_s=float("inf"))
    return (None if exploration.pending else set(exploration.failing)), exploration.executions


def late(seed):
    """Return a program that decides the order when the set is looked at."""
    return generate(seed, lambda: TaskSet(asyncio.get_running_loop()))[0]


@pytest.mark.slow
@pytest.mark.parametrize("rung", list(Rung))
def test_orders_chosen_late_meet_the_same_outcomes(rung, monkeypatch):
    """In both modes, with less than half of the executions."""
    found = {
        seed: [outcomes(late(seed), mode=mode, rung=rung) for mode in ("certain", "fingerprint")] for seed in range(10)
    }
    monkeypatch.setattr(identity, "_is_private", lambda frame: False)
    monkeypatch.setattr("harness.runtime.readers.WAIT", None)
    monkeypatch.setattr("harness.runtime.task_sets.searched_loop", lambda: None)
    costs = []
    for seed, ((certain, _), (merged, executions)) in found.items():
        program, shape = generate(seed, set)
        every, reference = outcomes(program, mode="fingerprint", rung=rung, budget=1500)
        if every is None or merged is None:
            continue
        assert merged == every, f"seed {seed}, {rung.label}: {shape}"
        assert certain in (None, every), f"seed {seed}, {rung.label}: {shape}"
        costs.append((executions, reference))
    assert len(costs) >= 5
    assert 2 * sum(cost for cost, _ in costs) < sum(cost for _, cost in costs)
