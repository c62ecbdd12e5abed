"""What other tools read of an explanation."""

import json

import pytest
from explained import DECIDING, HERE, explanation

from harness.model.explanation import Deciding, Moment, Ordering
from harness.report.json import explanation_object

SECOND = ("done/save#1 commits (run 0)", "flow resumes")


def deciding(*pairs):
    """Return what decides, of the names of its events."""
    return Deciding(tuple(Ordering(*(Moment(name, HERE) for name in pair)) for pair in pairs), 10, 2)


@pytest.mark.parametrize("pairs", [[DECIDING], [DECIDING, SECOND]])
def test_deciding_has_two_names_for_each_ordering(pairs):
    """One list of names, however many orderings there are; the same as a value, and in words."""
    found = explanation(deciding=deciding(*pairs))
    told = json.loads(json.dumps(explanation_object(found)))
    assert told["deciding"] == [name for pair in pairs for name in pair] == list(found.deciding.names)
    assert told["orderings"] == [list(pair) for pair in pairs]
    assert told["places"] == [[HERE, HERE] for _ in pairs]
    assert str(found.deciding) == " and ".join(f"{first} before {second}" for first, second in pairs)


def test_deciding_is_null_where_nothing_decides():
    """With the reason, where nobody looked."""
    told = explanation_object(explanation(deciding=None, unexplained="each execution takes all turns"))
    assert (told["deciding"], told["orderings"], told["places"]) == (None, [], [])
    assert told["unexplained"] == "each execution takes all turns"
