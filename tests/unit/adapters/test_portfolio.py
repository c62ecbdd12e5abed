"""Schedulers by name, and the phases of the default portfolio."""

import asyncio

import pytest
from hypothesis.internal.conjecture import providers

import harness
from harness import Rung
from harness.adapters.portfolio import PART, load_scheduler, make_parts, make_phases
from harness.model.errors import UsageError
from harness.schedulers.pct import PLUGIN as PCT
from harness.search.parts import search_parts
from harness.search.portfolio import search
from harness.search.target import Target


def test_a_number_is_a_parameter():
    """``pct-3`` is PCT of depth 3; ``pct`` varies it."""
    assert load_scheduler("pct") is PCT
    assert type(load_scheduler("pct-3")) is type(PCT)
    assert load_scheduler("trio-shuffle").rung is Rung.RELAXED


@pytest.mark.parametrize(
    ("name", "message"), [("pos-3", "takes no number"), ("pct-x", "unknown scheduler"), ("walk-3", "unknown scheduler")]
)
def test_a_wrong_name_is_wrong_usage(name, message):
    """Said in one line."""
    with pytest.raises(UsageError, match=message):
        load_scheduler(name)


@pytest.mark.parametrize("rung", list(Rung))
def test_the_default_portfolio_goes_on_after_hypothesis(rung):
    """Hypothesis notices when a small space is exhausted; the rest of the budget is not lost."""
    first, drawn, last = make_phases(rung=rung)
    assert first is last
    assert (first.name, drawn.name) == ("in turns", "hypothesis")


@pytest.mark.parametrize("scheduler", ["portfolio", "hypothesis", "uniform", "sweep", "greybox", "surw"])
@pytest.mark.parametrize("budget", [1, 2, 17, 120])
def test_a_search_that_finds_nothing_executes_no_more_than_its_budget(scheduler, budget):
    """Neither the check that executions repeat nor the examples that Hypothesis gives up come on top."""
    result = search_parts(Target("steps", many_steps), make_parts(scheduler, budget=budget, seed=3))
    assert (result.verdict, result.executions) == ("none-found", budget)


@pytest.mark.slow
def test_parts_share_a_budget_without_a_rest():
    """Two whole parts and a small one."""
    result = search_parts(Target("steps", many_steps), make_parts(budget=2 * PART + 3, seed=3))
    assert (result.verdict, result.executions) == ("none-found", 2 * PART + 3)


async def many_steps():
    """Complete eight ops, each of which may fail, in any order."""

    async def work(name):
        for number in range(2):
            await harness.point(f"{name}{number}")
            harness.fault(f"{name} fails")

    await asyncio.gather(*(work(name) for name in "abcd"))


def test_hypothesis_reads_the_sources_before_the_first_turn(monkeypatch):
    """Inside a turn it would be taken for one that blocks, on a busy machine."""
    running = []
    collect = providers._get_local_constants

    def noted():
        running.append(asyncio._get_running_loop() is not None)
        return collect()

    async def program():
        await harness.point("once")

    monkeypatch.setattr(providers, "_get_local_constants", noted)
    search(Target("program", program), phases=make_phases("hypothesis", rung=Rung.EXACT), budget=3)
    assert running[0] is False
