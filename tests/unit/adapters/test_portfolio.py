"""Schedulers by name, and the phases of the default portfolio."""

import pytest

from harness import Rung
from harness.adapters.portfolio import load_scheduler, make_phases
from harness.model.errors import UsageError
from harness.schedulers.pct import PLUGIN as PCT


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
