"""What is proved is proved, what is broken is never certified, and the counts stay small."""

import asyncio
import io
import queue
import types
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

import pytest
from agent_framework import InMemoryCheckpointStorage

import harness
from harness import Rung
from harness.adapters.loading import find_scenario
from harness.adapters.targets import scenario_target
from harness.runtime import fingerprint as fingerprints
from harness.runtime import objects
from harness.search import expansion
from harness.search.exhaustive import Exploration
from harness.search.prove import completed_bound, prove
from harness.search.target import Target
from tests.quality.mutants import MUTANTS, with_mutant

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def target_of(name, storage, **options):
    """Return the target of a scenario of this repository."""
    return scenario_target(find_scenario(name, folder=SCENARIOS), storage, **options)


def relaxed(program):
    """Return a target of ``program`` up to the rung relaxed."""
    return Target(program.__name__, program, rung=Rung.RELAXED)


def locks(tasks):
    """Return a target of tasks that take one lock once."""

    async def program():
        lock = asyncio.Lock()

        async def take():
            async with lock:
                pass

        await asyncio.gather(*(take() for _ in range(tasks)))

    return relaxed(program)


class Yields(InMemoryCheckpointStorage):
    """Yields before it saves."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    async def save(self, checkpoint):
        for _ in range(self.times):
            await asyncio.sleep(0)
        return await super().save(checkpoint)


# -- small spaces -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "most"), [(2, 4), (3, 12), (4, 60)])
def test_tasks_that_take_one_lock_are_proved_in_few_executions(tasks, most):
    """Relaxed; the best peers need 24 for four tasks."""
    proof = prove(locks(tasks))
    assert proof.verdict == "proved"
    assert proof.executions <= most


@pytest.mark.slow
def test_issue_9615_on_memory_is_proved_in_one_execution():
    """As its save is: rung latency, no shapes. No set of tasks is looked at whose order matters."""
    for mode in ("fingerprint", "certain"):
        proof = prove(target_of("issue_9615", "memory", shapes=False), mode=mode)
        assert (proof.verdict, proof.executions, proof.schedules) == ("proved", 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("times", "most"), [(1, 40), (3, 120)])
def test_save_on_failure_with_a_save_that_yields(times, most):
    """Relaxed."""
    scenario = replace(find_scenario("issue_9615", folder=SCENARIOS), storages={"yields": lambda _: Yields(times)})
    target = scenario_target(scenario, "yields", fix="save-on-failure", shapes=False, rung=Rung.RELAXED)
    proof = prove(target)
    assert proof.verdict == "proved"
    assert proof.executions <= most


@pytest.mark.slow
def test_both_modes_count_the_same_schedules():
    """Equal states merged, or every schedule executed."""
    for storage, merges in (("remote", False), ("file", True)):
        target = target_of("issue_9615", storage, shapes=False, rung=Rung.EXACT, fix="shielded-save")
        merged, every = prove(target), prove(target, mode="certain", budget=3000)
        assert (merged.verdict, every.verdict) == ("proved", "proved")
        assert merged.schedules == every.executions
        assert (merged.executions < every.executions) == merges


# -- the fix and its mutants ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "storage",
    [
        pytest.param("memory", marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("file", "remote", "sqlite")),
    ],
)
def test_shielded_save_is_proved_in_every_await_shape(storage):
    """All schedules of the rung latency, all await shapes, the sibling failing at each of its await points."""
    proof = prove(target_of("issue_9615_failures", storage, fix="shielded-save", shapes=True))
    assert proof.verdict == "proved", proof.reasons
    assert proof.space.shapes
    assert proof.unseen == ()
    assert proof.check.sampled == 40


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_of_the_fix_is_refuted(name):
    """Within twenty executions."""
    proof = prove(with_mutant(target_of("issue_9615", "memory", shapes=True), name), to_first=True, budget=20)
    assert proof.verdict == "violation"
    assert proof.outcomes[0].replays


# -- no certificate for a buggy program -------------------------------------------------------------

BUGGY = [
    ("issue_9615_latency", "slow", Rung.LATENCY),
    ("issue_9615_latency", "slow", Rung.RELAXED),
    ("issue_9615_yield", "yielding", Rung.RELAXED),
    ("issue_9615_yield_twice", "yielding", Rung.RELAXED),
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fingerprint", "certain"])
@pytest.mark.parametrize(("name", "storage", "rung"), BUGGY)
def test_a_buggy_program_is_never_certified(name, storage, rung, mode):
    """At every bound it is refuted or unfinished."""
    target = target_of(name, storage, rung=rung, shapes=False)
    budgets = {0: 60, 1: 60, 2: 60, 4: 60, None: 250}
    verdicts = [prove(target, mode=mode, bound=bound, budget=budget).verdict for bound, budget in budgets.items()]
    assert set(verdicts) <= {"violation", "unfinished"}
    if mode == "fingerprint":
        assert verdicts[-1] == "violation"


@pytest.mark.slow
def test_a_buggy_program_is_refuted_with_every_distinct_outcome():
    """One outcome, fewest deviations first, and the list is complete."""
    proof = prove(target_of("issue_9615", "remote", shapes=False))
    assert (proof.verdict, proof.exhausted) == ("violation", True)
    (found,) = proof.outcomes
    assert found.replays
    assert found.execution.schedule.deviations == 0


def test_distinct_failures_are_listed_apart():
    """Grouped by oracle and message."""

    async def program():
        if harness.fault("first"):
            raise ValueError("first")
        if harness.fault("second"):
            raise ValueError("second")

    proof = prove(Target("faults", program))
    assert [found.violation.message for found in proof.outcomes] == [
        "the program raised ValueError: first",
        "the program raised ValueError: second",
    ]
    assert proof.space.faults


@pytest.mark.slow
def test_what_the_fix_does_not_cover_is_listed():
    """A save that raises before its commit: no fix of the cancellation helps."""
    target = target_of("issue_9615", "memory", fix="shielded-save", shapes=False, faults=("cancel", "storage"))
    proof = prove(target, to_first=True, budget=400)
    assert (proof.verdict, proof.space.faults) == ("violation", True)
    assert proof.outcomes[0].replays
    assert "raises before commit" in proof.outcomes[0].execution.schedule.decisions[0].option


@pytest.mark.slow
def test_a_cancellation_at_any_moment_is_proved_harmless():
    """Each moment that some execution reaches is tried: what is remembered of earlier executions is no state."""

    async def program():
        await durable_run(asyncio.get_running_loop())

    async def durable_run(loop):
        from harness.runtime.faults import Fate

        fate = Fate(loop, "the run", kinds=("cancelled",), memory=loop.memory)
        task = loop.create_task(asyncio.sleep(0, "x"))
        fate.begin(task.cancel)
        await asyncio.wait({task})
        fate.end()
        seen.add("cancelled" if task.cancelled() else "returned")

    seen = set()
    proof = prove(Target("fate", program))
    assert proof.verdict == "proved"
    assert seen == {"cancelled", "returned"}


# -- limits -----------------------------------------------------------------------------------------


async def long_story():
    """Twelve ops in any order."""
    order = []

    async def tell(name):
        await harness.point(name)
        order.append(name)

    await asyncio.gather(*(tell(name) for name in "abcdefghijkl"))


def test_a_budget_that_ends_first_says_how_much_is_explored():
    """An interval, never a pass."""
    proof = prove(Target("long", long_story), budget=5)
    assert proof.verdict == "unfinished"
    assert 0 <= proof.estimate.low <= proof.estimate.explored <= proof.estimate.high <= 0.2
    assert proof.estimate.schedules > 1e8


@pytest.mark.slow
def test_the_estimate_covers_the_truth():
    """The number of schedules of a space that can be counted: five ops in any order, with early arrivals."""

    async def program():
        await asyncio.gather(*(harness.point(name) for name in "abcd"))

    whole = prove(Target("four", program))
    part = prove(Target("four", program), budget=20)
    assert whole.verdict == "proved"
    assert part.verdict == "unfinished"
    assert part.estimate.schedules == pytest.approx(whole.schedules, rel=0.5)
    assert part.estimate.low <= part.schedules / whole.schedules <= part.estimate.high


def test_a_completed_bound_names_the_next_one():
    """It is no proof."""
    proof = prove(target_of("issue_9615", "remote", shapes=False, fix="shielded-save"), bound=0)
    assert (proof.verdict, proof.completed_bound) == ("unfinished", 0)


def test_a_state_that_was_first_met_the_longer_way_limits_the_completed_bound():
    """A moment that is learned late leads there with fewer deviations; what leads on was counted with more."""
    exploration = Exploration(Target("long", long_story), mode="fingerprint", bound=3)
    exploration.beyond = 5
    assert completed_bound(exploration) == 3
    exploration.shorter = 1
    assert completed_bound(exploration) == 1


def test_a_bound_beyond_which_nothing_lies_is_a_proof():
    """All schedules of the program have at most that many deviations."""
    proof = prove(target_of("issue_9615", "memory", shapes=False), bound=5)
    assert (proof.verdict, proof.reasons) == ("proved", ())


def test_a_program_that_outlasts_the_patience_of_the_loop_is_not_proved():
    """The op that is forced in after 128 iterations took a choice away."""

    async def program():
        task = asyncio.ensure_future(harness.point("slow"))
        count = 0
        while not task.done():
            count += 1
            await asyncio.sleep(0)

    proof = prove(Target("polling", program), mode="certain", budget=400)
    assert proof.verdict == "unfinished"
    assert any("patience" in reason for reason in proof.reasons)


# -- the check of the fingerprint -------------------------------------------------------------------


async def remembers_the_order():
    """Fail when the second op came first."""
    order = []

    async def tell(name):
        await harness.point(name)
        order.append(name)

    await asyncio.gather(tell("one"), tell("two"))
    await harness.point("later")
    await asyncio.gather(harness.point("x"), harness.point("y"))
    assert order == ["one", "two"]


def test_what_the_walk_sees_keeps_states_apart():
    """A list in a closure is state."""
    assert prove(Target("order", remembers_the_order)).verdict == "violation"


def test_a_fingerprint_that_sees_too_little_is_found_out(monkeypatch):
    """The sample of pruned prefixes goes on differently: no certificate."""
    monkeypatch.setattr(
        expansion, "fingerprint", lambda loop, extra, unseen: (repr(sorted(map(str, loop.parked))), frozenset())
    )
    proof = prove(Target("order", remembers_the_order))
    assert proof.verdict == "unfinished"
    assert "went on differently" in proof.reasons[0]


@pytest.mark.parametrize(
    ("kind", "readable"),
    [
        (io.BytesIO, False),
        (queue.SimpleQueue, False),
        (type("OwnBuffer", (io.BytesIO,), {}), False),
        (type("Own", (), {}), True),
        (type("Slotted", (), {"__slots__": ("one",)}), True),
        (types.new_class("Generic", (Generic[TypeVar("T")],)), True),
        (asyncio.Event, True),
    ],
)
def test_state_in_c_is_told_from_python(kind, readable):
    """On every Python: since 3.12 classes of the standard library that are written in C look like Python's."""
    assert (objects.handler_of(kind()) is objects.put_instance) == readable


def test_what_the_walk_cannot_see_is_named():
    """An object of C whose state is hidden: no two states with it are taken for one."""

    async def program():
        hidden = queue.SimpleQueue()
        await asyncio.gather(harness.point("a"), harness.point("b"))
        hidden.put("x")

    proof = prove(Target("hidden", program))
    assert (proof.verdict, proof.states, proof.check.pruned) == ("proved", 0, 0)
    assert proof.unseen == ("_queue.SimpleQueue",)
    assert any("states with _queue.SimpleQueue were taken as different" in text for text in proof.assumptions)


def test_module_globals_of_the_program_are_state():
    """Also numbers that a function rebinds."""
    assert prove(Target("global", counts_in_a_global)).verdict == "violation"


COUNT = 0


async def counts_in_a_global():
    global COUNT
    COUNT = 0

    async def double():
        global COUNT
        await harness.point("double")
        COUNT = COUNT * 2

    async def add():
        global COUNT
        await harness.point("add")
        COUNT = COUNT + 1

    await asyncio.gather(double(), add())
    await asyncio.gather(harness.point("x"), harness.point("y"))
    assert COUNT == 1


@pytest.mark.parametrize("kind", ["attribute", "name", "attribute of a future"])
def test_what_a_program_writes_on_a_task_or_a_future_is_state(kind):
    """They have no ``__dict__`` that one could read."""

    async def program():
        task, future = asyncio.current_task(), asyncio.get_running_loop().create_future()

        async def write(text):
            await harness.point(text)
            if kind == "name":
                task.set_name(text)
            else:
                (task if kind == "attribute" else future).mark = text

        await asyncio.gather(write("one"), write("two"))
        await asyncio.gather(harness.point("x"), harness.point("y"))
        last = task.get_name() if kind == "name" else (task if kind == "attribute" else future).mark
        assert last == "two"

    assert prove(Target("writes", program)).verdict == "violation"


@pytest.mark.slow
def test_equal_tasks_that_took_each_other_s_place_are_two_states():
    """Tasks of a group that differ in nothing but their number; the check of pruned prefixes goes by their names."""

    async def program():
        lock = asyncio.Lock()

        async def take():
            async with lock:
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(take())

    proof = prove(relaxed(program))
    assert (proof.verdict, proof.check.difference) == ("proved", "")


def test_sets_are_tried_in_other_orders_only_where_tasks_share_one():
    """A program that hashes no task costs one order; one that iterates a set of tasks costs all."""

    async def plain():
        await asyncio.gather(harness.point("a"), harness.point("b"))

    async def with_set():
        names = []

        async def tell(name):
            names.append(name)

        tasks = [asyncio.ensure_future(tell("a")), asyncio.ensure_future(tell("b"))]
        group = set(tasks)
        await asyncio.sleep(0)
        assert [tasks.index(task) for task in group] == [0, 1]

    assert fingerprints.TIME_GRID_S > 0
    assert prove(Target("plain", plain)).verdict == "proved"
    assert prove(Target("with_set", with_set)).verdict == "violation"
