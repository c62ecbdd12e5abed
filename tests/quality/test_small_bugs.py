"""Small bugs of many shapes are found in few executions by the default portfolio."""

import statistics

import pytest

from harness import Rung, execute
from harness.adapters.portfolio import make_phases
from harness.search.portfolio import search
from harness.search.target import Target
from tests.quality.small_bugs import PROGRAMS

# Means over ten seeds: a half more than they are.
BOUNDS = {
    **dict.fromkeys(PROGRAMS, 6),
    "reader_between_two_writes": 12,
    "overcommitted": 12,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_order_passes(name):
    """Otherwise one execution would be enough."""
    assert execute(PROGRAMS[name]).ending.kind == "returned"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_portfolio_needs_few_executions(name):
    """Each failure replays."""
    target = Target(name=name, program=PROGRAMS[name], rung=Rung.RELAXED)
    found = []
    for seed in range(10):
        counterexample = search(target, phases=make_phases(rung=Rung.RELAXED, seed=seed), budget=200).counterexample
        assert counterexample.replays
        found.append(counterexample.found_after)
    assert statistics.mean(found) <= BOUNDS[name]
