"""How telling an event is."""

import pytest

from harness.model.explanation import NOISE
from harness.search.events import MERE, weight_of


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("flow/flaky raises RuntimeError", 0),
        ("save.committed done/save#1 (run 0)", 0),
        ("deliver done/save#1.commit", 4),
        ("_deliver_messages takes turn 3", MERE),
        ("raises_errors returns", MERE),
        ("effect is cancelled", MERE),
        ("flow/run.started waits", NOISE),
    ],
)
def test_a_turn_is_weighed_by_what_it_came_to_and_a_fact_by_its_kind(name, weight):
    """Not by words that happen to be in the name of a task."""
    assert weight_of(name) == weight
