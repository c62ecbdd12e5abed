"""A set of tasks decides its order when somebody looks, and only among the members whose places matter."""

import asyncio
import itertools
import sys

import pytest

from harness.runtime.loop import ControlledLoop
from harness.runtime.task_sets import TaskDict, TaskSet
from harness.runtime.uses import drops_result, only_waits, that_matter
from harness.search.prove import prove
from harness.search.target import Target


class Looked:
    """Yields nothing, and keeps which of two tasks mattered: ``ended`` or ``live``."""

    def __init__(self, tasks):
        self.tasks = tasks
        self.mattered = None

    def __iter__(self):
        members = that_matter(sys._getframe(1), list(self.tasks.values()))
        self.mattered = [name for name, task in self.tasks.items() if task in members]
        return iter(())


def cancels_the_live(tasks):
    for task in tasks:
        if not task.done():
            task.cancel()


def keeps_the_last(tasks):
    for task in tasks:
        if not task.done():
            pass
    return task if tasks.mattered is None else None


def names_all(tasks):
    return [task.get_name() for task in tasks]


def asks_any(tasks):
    me = None
    return any(task is not me and not task.done() for task in tasks)


def asks_with_an_effect(tasks):
    return any(task.cancel() for task in tasks)


def selects(tasks):
    spared = []
    return [task for task in tasks if not task.done() and task not in spared]


def selects_by_something_else(tasks):
    spared = iter(())
    return [task for task in tasks if not task.done() and task not in spared]


def calls_after_done(tasks):
    return [task for task in tasks if not task.done() and task.get_name()]


def calls_before_done(tasks):
    return [task for task in tasks if task.get_name() and not task.done()]


def has_its_own_any(tasks):
    any = sorted
    return any(not task.done() for task in tasks)


def listed(tasks):
    return list(tasks)


def first_of(tasks):
    return [task for task in itertools.islice(tasks, 1) if not task.done()]


def cancels_the_first(tasks):
    for task in itertools.islice(tasks, 1):
        if not task.done():
            task.cancel()


@pytest.mark.parametrize(
    ("look", "matter"),
    [
        (cancels_the_live, ["live"]),
        (keeps_the_last, ["ended", "live"]),
        (names_all, ["ended", "live"]),
        (asks_any, []),
        (asks_with_an_effect, ["ended", "live"]),
        (selects, ["live"]),
        (selects_by_something_else, ["ended", "live"]),
        (calls_after_done, ["live"]),
        (calls_before_done, ["ended", "live"]),
        (has_its_own_any, ["ended", "live"]),
        (listed, ["ended", "live"]),
        (first_of, ["ended", "live"]),
        (cancels_the_first, ["ended", "live"]),
    ],
)
def test_the_source_says_whose_place_matters(look, matter):
    """What is not recognised depends on all."""

    async def program():
        tasks = {"ended": asyncio.create_task(asyncio.sleep(0)), "live": asyncio.create_task(asyncio.sleep(9))}
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        looked = Looked(tasks)
        look(looked)
        return looked.mattered

    assert asyncio.run(program()) == matter


def test_lists_that_are_only_gathered_depend_on_the_live():
    """The results are dropped; a list that is used for anything else depends on all."""

    async def gathers(tasks):
        found = [task for task in tasks]  # noqa: C416  # the form that is meant
        if found:
            await asyncio.gather(*found, return_exceptions=True)

    async def returns(tasks):
        found = [task for task in tasks]  # noqa: C416
        await asyncio.gather(*found, return_exceptions=True)
        return found

    async def keeps(tasks):
        found = [task for task in tasks]  # noqa: C416
        return await asyncio.gather(*found, return_exceptions=True)

    async def program():
        tasks = {"ended": asyncio.create_task(asyncio.sleep(0)), "live": asyncio.create_task(asyncio.sleep(9))}
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        looked = Looked(tasks)
        found = []
        for form in (gathers, returns, keeps):
            await form(looked)
            found.append(looked.mattered)
        return found

    assert asyncio.run(program()) == [["live"], ["ended", "live"], ["ended", "live"]]


def test_waits_as_statements_are_told_from_those_whose_sets_are_kept():
    """A set display that only asyncio.wait sees, and an await whose result is dropped."""

    class Hashed:
        def __hash__(self):
            seen.append((only_waits(sys._getframe(1)), drops_result(sys._getframe(2))))
            raise LookupError  # so that nothing is waited for

    async def statement():
        await asyncio.wait({Hashed()})

    async def kept():
        done, _ = await asyncio.wait({Hashed()})
        return done

    async def elsewhere():
        await asyncio.sleep({Hashed()})

    async def outer(form):
        await form()

    async def program():
        for form in (statement, kept, elsewhere):
            with pytest.raises(LookupError):
                await outer(form)

    seen = []
    asyncio.run(program())
    assert seen == [(True, True), (False, True), (False, True)]


def proved(look):
    """Prove a program in which three tasks are kept in a set at which ``look`` looks; return what was found."""

    async def program():
        tasks = TaskSet(asyncio.get_running_loop(), [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)])
        try:
            look(tasks)
        finally:
            await asyncio.gather(*tasks.members)

    return prove(Target("looks", program))


def test_a_set_keeps_the_order_that_was_seen():
    """Twice the same order, in each of the six that three tasks can have."""
    orders = set()

    def look(tasks):
        first = [tasks.members.index(task) for task in tasks]
        assert first == [tasks.members.index(task) for task in tasks]
        orders.add(tuple(first))

    assert proved(look).verdict == "proved"
    assert len(orders) == 6


def test_what_was_not_seen_is_still_open():
    """Two of three were seen; where the third comes is a choice of its own."""
    orders = set()

    def look(tasks):
        spared = tasks.members[2:]
        pair = [task for task in tasks if task not in spared]
        first = [tasks.members.index(task) for task in pair]
        orders.add((*first, "then", *(tasks.members.index(task) for task in tasks)))

    assert proved(look).verdict == "proved"
    assert len(orders) == 6


def test_a_set_that_changes_while_it_is_iterated_is_told():
    """As a set does."""

    def look(tasks):
        for task in tasks:
            tasks.discard(task)

    proof = proved(look)
    assert proof.outcomes[0].violation.message == "the program raised RuntimeError: Set changed size during iteration"


def test_the_containers_behave_as_those_that_they_stand_for():
    """Operators give plain sets; a dict goes by insertion."""

    async def program():
        one, two = asyncio.create_task(asyncio.sleep(0)), asyncio.create_task(asyncio.sleep(0))
        tasks, names = TaskSet(asyncio.get_running_loop(), [one]), TaskDict()
        tasks.update([one, two], [two])
        tasks.discard(None)
        names[two], names[one] = "two", "one"
        del names[two]
        names[two] = names.get(two, "again")
        await asyncio.gather(one, two)
        return (
            [len(tasks), one in tasks, None in tasks, tasks == {one, two}, tasks - {one} == {two}],
            [type(tasks | {one}), tasks.copy() == {one, two}, tasks.union([one]), tasks.difference([two]) == {one}],
            [list(names.values()), len(names), one in names],
        )

    with asyncio.Runner(loop_factory=ControlledLoop) as runner:
        plain, made, named = runner.run(program())
    assert plain == [2, True, False, True, True]
    assert (made[0], made[1], len(made[2]), made[3]) == (set, True, 2, True)
    assert named == [["one", "again"], 2, True]
