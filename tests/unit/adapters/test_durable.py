"""Endings and resumes of runs, each as a choice of the search."""

import asyncio
import functools

import pytest
from agent_framework import RunContext, step, workflow

import harness
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.errors import UsageError
from harness.model.scenario import Scenario
from harness.search.explain import witnessed_timeline
from harness.search.portfolio import search
from harness.search.readable import parse_readable
from harness.search.recording import Planned
from harness.search.target import Target


@step
async def first(order: int) -> int:
    """Take two waits."""
    try:
        await harness.point("one")
        await harness.point("two")
    finally:
        harness.effect("cleanup")
    return order


@workflow
async def flow(order: int) -> int:
    """Run one step."""
    return await first(order)


@workflow
async def asking(order: int, ctx: RunContext) -> str:
    """Ask a human."""
    charged = await first(order)
    answer = await ctx.request_info({"order": charged}, str, request_id="approve")
    return f"{charged} {answer}"


def target_of(program, *, faults=(), storage="memory") -> Target:
    """Return a target for a program of one durable, without shapes and oracles."""
    scenario = Scenario("test", program, {storage: None}, oracles=(), shapes=False, faults=tuple(faults))
    return scenario_target(scenario, storage)


def executions(target):
    """Yield the execution of each single deviation of kind fault, with its option's name."""
    with target.open() as runner:
        recorder = Planned()
        runner.run(recorder)
        for point in recorder.seen:
            if point.kind != "fault":
                continue
            for value in range(1, min(point.options, 60)):
                execution = runner.run(Planned({point.index: value}), tracing=True)
                if execution.schedule.decisions:  # the run may have fewer moments
                    yield execution.schedule.decisions[0].option, execution


def ended(execution, run=0):
    """Return how a run ended."""
    return next(e.data["how"] for e in execution.journal if e.kind == "run.ended" and e.run == run)


async def run_and_resume(durable):
    """Run once, resume once."""
    run = await durable.run(flow, 7)
    resumed = await durable.resume(run)
    assert resumed.outputs == [7]
    assert not resumed.error


@pytest.mark.parametrize(("fault", "how"), [("cancel", "cancelled"), ("crash", "crashed"), ("timeout", "timed out")])
def test_a_run_ends_at_every_moment_and_resumes(fault, how):
    """Each await point is tried; whatever happens, the resume ends with the outputs."""
    moments = set()
    for option, execution in executions(target_of(run_and_resume, faults=[fault])):
        if option.startswith("run 0") and f"{how} at" in option:
            assert execution.ending.kind == "returned", (option, execution.ending)
            moments.add(ended(execution))
    assert how in moments


def test_no_finally_runs_in_a_crash():
    """And it does when the run is cancelled."""
    seen = {}
    for fault in ("cancel", "crash"):
        for option, execution in executions(target_of(run_and_resume, faults=[fault])):
            if option.startswith("run 0: c") and "twice" not in option and ended(execution) != "returned":
                effects = [event.run for event in execution.journal if event.kind == "effect"]
                seen.setdefault(fault, set()).add(effects.count(0))
    assert seen["crash"] <= {0, 1}
    assert 1 in seen["cancel"]
    # a run that had begun its step and was cancelled always cleans up; one that crashed in it never does
    assert 0 in seen["crash"]


@workflow
async def stubborn(order: int) -> int:
    """Make something of a cancellation."""
    try:
        await harness.point("one")
    except asyncio.CancelledError:
        return -order
    return order


def test_a_timeout_is_that_of_asyncio():
    """The caller has a TimeoutError only where the cancellation comes out of the run, and goes on itself."""
    seen = {}

    async def program(durable, *, of):
        run = await durable.run(of, 7)
        caller = asyncio.current_task()
        seen[run.ending, repr(run.error), run.outputs == [7]] = caller.cancelling()

    for runs in (functools.partial(program, of=made) for made in (flow, stubborn)):
        for option, execution in executions(target_of(runs, faults=["timeout"])):
            assert option.startswith("run 0: timed out at moment")
            struck = [event.kind for event in execution.journal if event.kind == "run.timeout"]
            assert struck or ended(execution) == "returned"
    assert seen == {("timed out", "TimeoutError()", False): 0, ("returned", "None", True): 0}


def test_a_timeout_and_a_completion_come_together():
    """The answer is in and the time is up in one iteration: the run loses, as it does in asyncio."""

    async def program(durable):
        await durable.run(flow, 7)

    schedule = parse_readable("run 0 timed out at moment 3; let in one early")
    with target_of(program, faults=["timeout"]).open() as runner:
        execution = runner.run(schedule, tracing=True)
    at = {turn.what: turn.number for turn in execution.trace}
    assert at["deliver run/flow/one"] == at["call Timeout._on_timeout"] < at["is cancelled"]
    assert ended(execution) == "timed out"
    assert "step.completed first" not in at


def test_a_consumer_closes_or_drops_the_stream():
    """At each event."""
    endings = set()
    for option, execution in executions(target_of(run_and_resume, faults=["stream"])):
        if option.startswith("stream of run 0"):
            assert execution.ending.kind == "returned", (option, execution.ending)
            endings.add(ended(execution))
    assert endings >= {"closed", "dropped"}


def test_a_resume_varies_by_checkpoint_instance_and_time():
    """All variants end."""
    options = {
        option.partition(": ")[2]: execution.ending.kind
        for option, execution in executions(target_of(run_and_resume, faults=["resume"]))
    }
    assert options == dict.fromkeys(
        ["when quiet", "second latest", "third latest", "first", "same instance", "two instances"], "returned"
    )


def test_a_pause_is_answered():
    """The caller sees the request; the resume with the answer ends."""

    async def program(durable):
        run = await durable.run(asking, 7)
        assert (run.ending, run.requests) == ("returned", ["approve"])
        resumed = await durable.resume(run, responses={"approve": "yes"})
        assert resumed.outputs == ["7 yes"]

    with target_of(program).open() as runner:
        assert runner.run(None).ending.kind == "returned"


def test_a_save_fails_before_or_after_its_commit():
    """The run fails with the injected error."""

    async def program(durable):
        run = await durable.run(flow, 7)
        assert run.ending in ("returned", "failed")

    options = [option for option, _ in executions(target_of(program, faults=["storage"]))]
    assert options[:2] == ["flow/save#1: raises before commit", "flow/save#1: raises after commit"]


def test_the_search_finds_a_fault_and_names_it():
    """The schedule says what happened to which run."""

    async def program(durable):
        run = await durable.run(flow, 7)
        assert run.ending == "returned"

    target = target_of(program, faults=["cancel"])
    found = search(target, phases=make_phases(rung=target.rung), budget=50).counterexample
    assert [decision.option for decision in found.execution.schedule.decisions] == ["run 0: cancelled at moment 1"]


@pytest.mark.slow
def test_hypothesis_meets_the_same_moments_in_every_example():
    """What one execution teaches of the next one's moments does not reach the draws."""

    async def program(durable):
        run = await durable.run(flow, 7)
        await durable.resume(run)

    target = target_of(program, faults=["cancel", "stream", "resume"])
    for seed in range(4):
        phases = make_phases("hypothesis", rung=target.rung, seed=seed)
        assert search(target, phases=phases, budget=100).verdict == "none-found"


def test_what_is_no_workflow_is_refused_in_one_line():
    """And so is an unknown fault."""

    async def program(durable):
        with pytest.raises(UsageError, match=r"^42 is not a workflow: "):
            await durable.run(42, 7)

    with target_of(program).open() as runner:
        assert runner.run(None).ending.kind == "returned"
    with pytest.raises(UsageError, match=r"^unknown fault 'quake'"):
        target_of(program, faults=["quake"])


def test_asyncio_runs_the_same_program(tmp_path):
    """On the stock loop nothing is injected."""
    from harness.adapters.agent_framework import PLUGIN

    async def main():
        await run_and_resume(PLUGIN.durable(PLUGIN.make_storage("memory", tmp_path), shapes=True, faults=["cancel"]))

    asyncio.run(main())


@pytest.mark.parametrize("scheduler", ["uniform", "pct", "surw"])
def test_quiet_comes_after_everything_else_whoever_decides(scheduler):
    """Also where single arrivals are chosen: a point, a sleep and a job are over by then."""
    seen = []

    async def program(durable):
        others = [
            asyncio.ensure_future(harness.point("point")),
            asyncio.ensure_future(asyncio.sleep(1)),
            asyncio.ensure_future(asyncio.to_thread(int)),
        ]
        await durable.quiet()
        seen.append([other.done() for other in others])

    scenario = Scenario("quiet", program, {"memory": None}, oracles=(), shapes=False)
    target = scenario_target(scenario, "memory")
    search(target, phases=make_phases(scheduler, rung=target.rung), budget=20)
    assert len(seen) >= 20
    assert seen == [[True, True, True]] * len(seen)


def test_a_timeline_says_how_a_run_ended():
    """Not only that it did."""

    async def program(durable):
        await durable.run(flow, 7)

    with target_of(program, faults=["timeout"]).open() as runner:
        schedule = runner.run(parse_readable("run 0 timed out at moment 3"), tracing=True).schedule
        found = witnessed_timeline(runner, schedule, oracle="progress")
    assert [row.text for row in found.rows if row.text.startswith("run 0")] == [
        "run 0 started",
        "run 0 timed out",
        "run 0 ended (timed out)",
    ]
