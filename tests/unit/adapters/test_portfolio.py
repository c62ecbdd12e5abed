"""Schedulers by name, and the phases of the default portfolio."""

import asyncio

import pytest
from hypothesis.internal.conjecture import providers

import harness
from harness import Rung
from harness.adapters.portfolio import load_scheduler, make_phases
from harness.model.errors import UsageError
from harness.schedulers.pct import PLUGIN as PCT
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
