"""What a search learns from its executions."""

from harness.model.choice import START
from harness.model.history import History, Step
from harness.search.learning import Coverage, lane_place

A1, A2, B1 = ("a", 1), ("a", 2), ("b", 1)


def steps(*pairs):
    """Return steps of (path, place)."""
    return [Step(path, place, False) for path, place in pairs]


def test_the_history_keeps_the_largest_counts():
    """Of each task at each place, and of choice points."""
    history = History()
    history.learn(steps(("a", A1), ("a", A1), ("b", B1)), points=3)
    history.learn(steps(("a", A1), ("a#2", A1)), points=2)
    assert history.counts == {("a", A1): 2, ("b", B1): 1, ("a#2", A1): 1}
    assert (history.executions, history.points, history.places()) == (2, 3, [A1, B1])


def test_the_history_knows_what_is_interesting():
    """By place, so that the same task's other turns are not."""
    history = History()
    history.learn([Step("a", A1, True), Step("a", A2, False)], points=1)
    assert list(history.interesting) == [A1]


def test_the_reverse_of_what_was_seen_is_wanted():
    """Until it is seen, too; two places of one coroutine are in the order of its program."""
    coverage = Coverage()
    assert coverage.add(steps(("a", A1), ("a", A2), ("b", B1))) == 3
    assert list(coverage.wanted_kinds) == [(B1, A1), (B1, A2)]
    assert coverage.add(steps(("a", A1), ("b", B1), ("a", A2))) == 1
    assert list(coverage.wanted_kinds) == [(B1, A1)]
    assert coverage.add(steps(("a", A1), ("b", B1), ("a", A2))) == 0


def test_what_a_parent_did_before_a_birth_is_never_reversed():
    """It happens before all that the child does; what it does later may come in either order."""
    coverage = Coverage()
    root, start = [("program", 1), ("program", 2)], ("a", START)
    coverage.add(steps(("", root[0]), ("a", start), ("", root[1])))
    assert list(coverage.wanted_kinds) == [(root[1], start)]


def test_arrivals_say_nothing_of_births():
    """Of two ops that a parent and its child wait for, either may arrive first."""
    coverage = Coverage()
    coverage.add(steps(("", ("program", "fetch")), ("a", ("a", "save"))))
    assert list(coverage.wanted_kinds) == [(("a", "save"), ("program", "fetch"))]
    assert len(coverage.places) == 2


def test_tasks_of_one_kind_are_told_apart():
    """Their places are ordered task by task, too."""
    coverage = Coverage()
    coverage.add(steps(("a", A1), ("a#2", A1), ("a", A2), ("a#2", A2)))
    assert coverage.wanted_kinds == {}
    assert (lane_place("a#2", A2), lane_place("a", A2)) in coverage.wanted_lanes
