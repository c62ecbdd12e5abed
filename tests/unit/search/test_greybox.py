"""Orders that the greybox phase enforces, and what it makes of a failure."""

import asyncio
import random

from harness import LoopSettings, Rung, execute
from harness.search.greybox import Greybox, Ordered
from harness.search.learning import NOTHING, Watched
from harness.search.portfolio import Trial
from harness.search.recording import HeldPlaces
from harness.search.target import Target
from harness.search.turns import InTurns


async def program():
    """Let two tasks log, in two turns each."""
    log = []

    async def left():
        await asyncio.sleep(0)
        log.append("left")

    async def right():
        for _ in range(4):
            await asyncio.sleep(0)
        log.append("right")

    tasks = [asyncio.create_task(left()), asyncio.create_task(right())]
    for task in tasks:
        await task
    return log


def run(scheduler, discipline="indices"):
    """Execute at rung relaxed and return the log."""
    settings = LoopSettings(rung=Rung.RELAXED, discipline=discipline, turn_limit=1_000)
    return execute(program, scheduler, settings=settings).ending.value


def place_of(name):
    """Return the place at which ``name`` waits for its second turn."""
    watched = Watched(Ordered((), base="default", source=random.Random(0)))
    assert run(watched) == ["left", "right"]
    return [step.place for step in watched.steps if step.path == name][1]


def test_a_held_place_waits_until_nothing_else_can_run():
    """Under both disciplines."""
    orders = ((NOTHING, place_of("left")),)
    assert run(Ordered(orders, base="default", source=random.Random(0))) == ["right", "left"]
    assert run(HeldPlaces([place_of("left")]), "ranks") == ["right", "left"]


def test_an_order_is_enforced_with_any_base():
    """``right`` reaches its second turn before ``left`` does."""
    orders = ((place_of("right"), place_of("left")),)
    for base in ("default", "walk", "priorities"):
        for seed in range(10):
            watched = Watched(Ordered(orders, base=base, source=random.Random(seed)))
            run(watched)
            reached = [step.place for step in watched.steps]
            assert reached.index(orders[0][0]) < reached.index(orders[0][1])


def test_an_order_that_is_impossible_is_given_up():
    """The task that would have to come first waits for the other."""
    orders = ((("never", 1), place_of("left")),)
    assert run(Ordered(orders, base="default", source=random.Random(0))) == ["right", "left"]


async def sleepers():
    """Let two tasks sleep."""
    await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.2))


def test_a_held_turn_is_seen_when_it_runs():
    """Under ranks too, where nobody is asked about it again."""
    watched = Watched(HeldPlaces([place_of("left")]))
    assert run(watched, "ranks") == ["right", "left"]
    reached = [step.path for step in watched.steps]
    assert reached.count("left") == 2
    assert reached.index("right") < len(reached) - 1 - reached[::-1].index("left")


def test_arrivals_are_seen_under_ranks():
    """When they are delivered, at every rung."""
    watched = Watched(HeldPlaces([]))
    execute(sleepers, watched, settings=LoopSettings(rung=Rung.LATENCY))
    assert [step.path for step in watched.steps] == ["sleep", "sleep#2"]


async def failing():
    """Fail when the right task comes first."""
    assert (await program())[0] == "left"


def test_a_failure_is_returned_as_holds():
    """In the discipline that shrinks best."""
    with Target(name="failing", program=failing, rung=Rung.RELAXED).open() as runner:
        found = Greybox(seed=0, rung=Rung.RELAXED).look(Trial(runner, budget=100))
    assert found.discipline == "ranks"
    assert len(found.plan) == 1


class Scripted:
    """A phase that notes when it has the turn; it ends after ``count`` executions."""

    def __init__(self, name, log, *, count, claims=()):
        self.name = name
        self._log = log
        self._count = count
        self._claims = list(claims)

    @property
    def claim(self):
        """Return what the script says, then 0."""
        return self._claims.pop(0) if self._claims else 0.0

    def steps(self, trial):
        """Count as an execution each."""
        for _ in range(self._count):
            trial.executions += 1
            self._log.append(self.name)
            yield None


def order_of(claims, *, budget=8, share=1.0):
    """Return who had the turn."""
    log = []
    first = Scripted("first", log, count=20, claims=claims)
    other = Scripted("other", log, count=20)
    trial = Trial(None, budget=budget)
    InTurns(first, [other, first], share=share).look(trial)
    return "".join(name[0] for name in log)


def test_phases_have_turns():
    """The first phase begins only if it claims to."""
    assert order_of([]) == "ofofofof"
    assert order_of([1.0]) == "fofofofo"


def test_a_claim_of_one_goes_before_everything_else():
    """And a claim of one half every other time."""
    assert order_of([1.0, 1.0, 1.0]) == "fffofofo"
    assert order_of([0.5] * 20)[:6] == "offfof"


def test_the_share_ends_a_look_and_the_next_goes_on():
    """So that another phase can come in between."""
    log = []
    other = Scripted("other", log, count=20)
    turns = InTurns(Scripted("first", log, count=20), [other], share=0.5)
    trial = Trial(None, budget=8)
    turns.look(trial)
    assert len(log) == 4
    turns.look(trial)
    assert len(log) == 8
