"""Exact numbers of schedules: all interleavings, and inequivalent ones where accesses are declared.

The families and numbers are those of the literature on partial-order reduction; any exhaustive search must
report exactly these.
"""

import asyncio
from math import factorial

import pytest

import harness
from harness import Rung
from harness.search.prove import prove
from harness.search.target import Target


def family(*tasks):
    """Return a target of tasks, each a list of turns, each turn a list of declared accesses such as "r x", "w x".

    The tasks exist at once, and the last one to end wakes the parent.
    """

    async def program():
        harness.declared()
        loop = asyncio.get_running_loop()
        over, left = loop.create_future(), len(tasks)

        async def run(turns):
            nonlocal left
            for number, accesses in enumerate(turns):
                if number:
                    await asyncio.sleep(0)
                for word in accesses:
                    kind, name = word.split()
                    harness.access(name, write=kind == "w")
            left -= 1  # every order of countdowns comes to the same
            if not left:
                over.set_result(None)

        alive = [loop.create_task(run(turns)) for turns in tasks]
        await over
        assert all(task.done() for task in alive)

    return Target("family", program, rung=Rung.RELAXED)


def all_interleavings(target, monkeypatch):
    """Return the number of executions of a search without any reduction."""
    monkeypatch.setattr("harness.declared", lambda: None, raising=False)
    proof = prove(target, mode="certain")
    monkeypatch.undo()
    assert proof.verdict == "proved"
    assert not proof.declared
    return proof.executions


def inequivalent(target):
    """Return the number of inequivalent schedules, all executed."""
    proof = prove(target, mode="certain")
    assert (proof.verdict, proof.declared) == ("proved", True)
    return proof.complete


def merged(target):
    """Return the number of schedules that a search stands for in which equal states are one."""
    proof = prove(target, mode="fingerprint")
    assert proof.verdict == "proved"
    return proof.schedules


def interleavings(tasks, turns):
    """Return (nk)! / (k!)^n."""
    return factorial(tasks * turns) // factorial(turns) ** tasks


CASES = [
    *[(f"{n} writers", [[["w x"]]] * n, factorial(n), factorial(n)) for n in (2, 3, 4)],
    *[
        (f"{n}x{k} atomic", [[["r x", "w x"]] * k] * n, interleavings(n, k), interleavings(n, k))
        for n, k in ((2, 3), (3, 2))
    ],
    *[(f"{n} increments", [[["r x"], ["w x"]]] * n, factorial(2 * n) // 2**n, factorial(n) ** 2) for n in (2, 3)],
    *[(f"1 writer {n} readers", [[["w x"]], *[[["r x"]]] * n], factorial(n + 1), 2**n) for n in (1, 2, 3, 4)],
    *[(f"{n}x{k} independent", [[[]] * k] * n, interleavings(n, k), 1) for n, k in ((2, 1), (2, 3), (3, 2), (4, 1))],
]
SLOW = [
    ("3x3 atomic", [[["r x", "w x"]] * 3] * 3, 1680, 1680),
    ("4 increments", [[["r x"], ["w x"]]] * 4, 2520, 576),
    ("5x5 independent", [[[]] * 5] * 5, None, 1),
]


@pytest.mark.parametrize(("tasks", "every", "classes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_counts_are_exact(tasks, every, classes, monkeypatch):
    """All interleavings without reduction, one execution per trace with it."""
    target = family(*tasks)
    assert all_interleavings(target, monkeypatch) == every
    assert inequivalent(target) == classes
    assert merged(target) == every


def test_independent_tasks_cost_one_execution():
    """Not one per interleaving, and none that is cut short."""

    async def independent():
        for _ in range(3):
            await asyncio.sleep(0)

    async def program():
        harness.declared()
        await asyncio.gather(independent(), independent())

    proof = prove(Target("independent", program, rung=Rung.RELAXED), mode="certain")
    assert (proof.verdict, proof.executions) == ("proved", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "every", "classes"), [case[1:] for case in SLOW], ids=[case[0] for case in SLOW])
def test_larger_counts_are_exact(tasks, every, classes, monkeypatch):
    """The same for programs that take seconds."""
    target = family(*tasks)
    assert inequivalent(target) == classes
    if every is not None:
        assert all_interleavings(target, monkeypatch) == every
