"""Where tasks are held, and in which order."""

from harness.model.choice import START
from harness.model.history import Step
from harness.search.holding import Gaps, held
from harness.search.learning import NOTHING, lane_place


def steps(*turns):
    """Return steps of (path, instruction); the name of the coroutine is that of the task without its number."""
    return [Step(path, (path.rpartition("/")[2].partition("#")[0], at), False) for path, at in turns]


def gaps_of(*turns):
    """Return what one execution taught."""
    gaps = Gaps()
    gaps.add(steps(*turns))
    return gaps


def all_of(following):
    """Return everything that is to be tried."""
    return list(iter(following, None))


A, B = [("a", START), *(("a", at) for at in range(1, 6))], [("b", START), ("b", 1)]


def test_the_middle_of_a_task_is_held_first():
    """Then the middle of the longest part that is left; of equals the later one."""
    holds = all_of(gaps_of(A[0], B[0], *A[1:], B[1]).next)
    assert holds == [
        held(("a", 3)),
        held(("b", 1), lane_place("a", ("a", START))),
        *map(held, [("a", 5), ("a", 2), ("a", 4), ("a", 1)]),
        held(("b", 1)),  # nobody has anything left to do
    ]


def test_who_was_through_already_is_made_late():
    """So that there is somebody to come into the gap."""
    holds = all_of(gaps_of(*A[:3], *B).next)
    late = held(("b", 1), lane_place("a", ("a", START)))
    assert holds == [held(("a", 2)), held(("a", 1)), late, held(("b", 1))]


def test_who_may_have_to_come_first_is_not_made_late():
    """The one that made a task, and the ones that it made."""
    holds = all_of(gaps_of(("a", START), ("a", 1), ("a/c", START), ("a/c", 1), ("a", 2), ("", 1)).next)
    assert [len(hold.orders) for hold in holds] == [1] * 4


def test_tasks_at_one_place_go_on_one_by_one_or_together():
    """One by one first."""
    holds = all_of(gaps_of(("a", START), ("a#2", START), ("a", 1), ("a#2", 1)).next)
    assert [(hold.orders, hold.one_by_one) for hold in holds] == [
        (((NOTHING, ("a", 1)),), True),
        (((NOTHING, ("a", 1)),), False),
    ]


def test_a_place_that_only_other_orders_lead_to_comes_later():
    """It is mostly a wait for what another task holds."""
    gaps = gaps_of(A[0], B[0], *A[1:4], B[1])
    gaps.add(steps(A[0], B[0], *A[1:3], ("a", 20), A[3], B[1]))
    held_a = [hold.orders[0][1][1] for hold in all_of(gaps.next) if hold.orders[0][1][0] == "a"]
    assert held_a == [2, 3, 1, 20]


def test_an_op_is_held_for_itself_and_before_turns():
    """Two sleeps have one name; a late answer assumes least."""
    gaps = gaps_of(("a", START), ("a#2", START), ("a", "sleep"), ("a", 1), ("a#2", "sleep"), ("a#2", 1))
    one, other = (lane_place(path, ("a", "sleep")) for path in ("a", "a#2"))
    assert all_of(gaps.next)[:2] == [held(one), held(other, lane_place("a", ("a", START)))]


def test_places_before_there_was_another_task_are_not_held():
    """Nobody could come into the gap."""
    gaps = gaps_of(("", 1), ("", 2), *B, ("", 3))
    assert [hold.orders[0][1] for hold in all_of(gaps.next)] == [("b", 1), ("", 3)]


def test_first_turns_of_siblings_are_reversed():
    """A task alone is held, and at last every kind."""
    first = ("a", START)
    gaps = gaps_of(("a", START), ("a#2", START), ("b", START), ("a#3", START))
    one, two, three = (lane_place(path, first) for path in ("a", "a#2", "a#3"))
    assert [hold.orders for hold in all_of(gaps.next_start)] == [
        ((two, one), (three, two)),
        ((NOTHING, ("b", START)),),
        ((NOTHING, first),),
    ]


def test_only_tasks_that_one_task_made_are_siblings():
    """Of others the older may have to come first."""
    gaps = gaps_of(("a", START), ("a/a", START), ("a/a#2", START))
    later, earlier = lane_place("a/a#2", ("a", START)), lane_place("a/a", ("a", START))
    assert gaps.next_start().orders == ((later, earlier),)
