"""What the controlled loop does, stock asyncio does too: the same programs on both, event by event."""

import pytest

from harness import Rung
from harness.runtime import arrivals, ops
from harness.runtime.execution import open_session
from soundness.compare import SCHEDULERS, default_difference, exact_difference
from soundness.programs import write

# A program that the driver gives up in the middle leaves coroutines behind.
abandons = pytest.mark.filterwarnings(
    "ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning"
)
DEFAULT_PROGRAMS = 400
EXACT_PROGRAMS = 50


@pytest.fixture
def session():
    with open_session() as session:
        yield session


def exact_differences(session, seeds, schedules, rung=Rung.EXACT):
    """Yield (program, scheduler, seed of the schedule, label, difference)."""
    names = sorted(SCHEDULERS)
    for seed in seeds:
        spec = write(seed)
        for number in range(schedules):
            name = names[number % len(names)]
            found, label = exact_difference(spec, scheduler=name, seed=number, session=session, rung=rung)
            yield seed, name, number, label, found


def test_default_order_is_the_order_of_stock_asyncio(session):
    """Where nothing is slow."""
    found = {seed: default_difference(write(seed), session=session) for seed in range(DEFAULT_PROGRAMS)}
    assert {seed: text for seed, text in found.items() if text} == {}


def test_exact_schedules_happen_on_stock_asyncio(session):
    """The same arrivals in the same iterations give the same events."""
    runs = list(exact_differences(session, range(EXACT_PROGRAMS), 6))
    assert [run for run in runs if run[-1]] == []
    assert {label for *_, label, _ in runs} == {Rung.EXACT}


@abandons
@pytest.mark.parametrize("rung", [Rung.LATENCY, Rung.RELAXED], ids=lambda rung: rung.label)
def test_a_schedule_labelled_exact_is_one_whatever_the_scheduler_might_have_done(session, rung):
    """The label is right; and the driver tells when it is not exact."""
    runs = list(exact_differences(session, range(40), 6, rung))
    assert [run for run in runs if run[-1] and run[-2] is Rung.EXACT] == []
    assert sum(1 for run in runs if run[-1] and run[-2] is not Rung.EXACT) >= 20


def mismatches(session):
    return sum(1 for run in exact_differences(session, range(60), 4) if run[-1])


@abandons
def test_the_driver_notices_an_op_that_is_back_too_early(session, monkeypatch):
    """As if a point took no time at all."""
    monkeypatch.setattr(ops, "_IN_TRANSIT", dict.fromkeys(ops._IN_TRANSIT, 0))
    assert mismatches(session) > 0


@abandons
def test_the_driver_notices_a_deadline_that_is_left_behind(session, monkeypatch):
    """As if the loop looked at the clock only when it is idle."""
    monkeypatch.setattr(arrivals, "deliver_due", lambda loop: None)
    assert mismatches(session) > 0


@abandons
def test_the_driver_notices_an_executor_out_of_order(session, monkeypatch):
    """As if every executor had a worker for every job."""
    monkeypatch.setattr(arrivals, "enabled_ops", lambda loop: loop.parked)
    assert mismatches(session) > 0


@pytest.mark.long
def test_default_order_of_ten_thousand_programs(session):
    """Not one differs."""
    assert [seed for seed in range(10_000) if default_difference(write(seed), session=session)] == []


@pytest.mark.long
def test_ten_exact_schedules_of_a_thousand_programs(session):
    """Not one differs."""
    assert [run for run in exact_differences(session, range(1000), 10) if run[-1]] == []
