"""What oracles ask to be noted, and what scenarios say about their judges and their clock."""

import asyncio

import pytest
from agent_framework import InMemoryCheckpointStorage, step, workflow

import harness
from harness.adapters.agent_framework import PLUGIN
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.errors import UsageError
from harness.model.registry import plugin_names
from harness.model.scenario import Scenario, scenario
from harness.report.lines import plain
from harness.report.text import failure_report
from harness.runtime.faults import LATER
from harness.search.explain import explanation_of
from harness.search.portfolio import search
from harness.search.recording import Planned


@step
async def charge(order: int) -> str:
    """Take one wait."""
    await harness.point("call")
    return f"charged {order}"


@step
async def ship(order: int) -> str:
    """Finish at once."""
    return f"shipped {order}"


@workflow
async def flow(order: int) -> list[str]:
    """Run one step after the other."""
    return [await charge(order), await ship(order)]


def target_of(program, *, storage="memory", **options):
    """Return the target of a program of one durable."""
    options = {"shapes": False, "oracles": ("all",), **options}
    factories = {"memory": None, "file": None, "sqlite": None, "remote": None, **options.pop("factories", {})}
    return scenario_target(Scenario("test", program, factories, **options), storage)


def executed(program, **options):
    """Return the execution of a program in default order."""
    with target_of(program, **options).open() as runner:
        return runner.run(None)


async def run_and_resume(durable):
    """Run once, resume once."""
    run = await durable.run(flow, 7)
    await durable.resume(run)


@pytest.mark.parametrize("storage", ["memory", "file", "remote", "sqlite"])
def test_a_sequential_workflow_keeps_every_promise(storage):
    """All oracles judge; none objects."""
    execution = executed(run_and_resume, storage=storage)
    assert (execution.ending.kind, execution.violations) == ("returned", ())


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["crash", "resume"])
def test_a_sequential_workflow_keeps_every_promise_when_something_happens(fault):
    """Every moment and every resume is tried."""
    target = target_of(run_and_resume, faults=(fault,))
    result = search(target, phases=make_phases("sweep", rung=target.rung), budget=150)
    assert result.counterexample is None, result.counterexample.violation


def test_nothing_is_noted_that_no_oracle_asks_for():
    """The journal of a default execution is as short as it was."""
    usual = {event.kind for event in executed(run_and_resume, oracles=("completed-steps-restored",)).journal}
    assert not any(kind.startswith(("storage.", "task.")) or kind in ("step.returned", "quiet") for kind in usual)
    more = {event.kind for event in executed(run_and_resume).journal}
    assert more >= {"storage.latest", "storage.loaded", "storage.state", "step.returned", "run.reference", "quiet"}


def test_the_patches_are_undone():
    """Also those that only some oracles need."""
    from agent_framework._workflows._functional import RunContext, StepWrapper

    from harness.runtime.identity import ControlledTask

    before = StepWrapper.__call__, RunContext.add_event, ControlledTask.cancel
    executed(run_and_resume)
    assert (StepWrapper.__call__, RunContext.add_event, ControlledTask.cancel) == before


def test_asking_for_more_changes_no_turn_of_the_program():
    """A schedule means the same with other oracles."""
    traces = []
    for oracles in (("completed-steps-restored",), ("all",)):
        with target_of(run_and_resume, oracles=oracles, storage="sqlite").open() as runner:
            trace = runner.run(None, tracing=True).trace
        traces.append([(turn.lane, turn.what) for turn in trace if not turn.lane.startswith("run ")])
    short, long = traces
    end = short.index(("test", "returns"))  # there the longer one goes on to its notes
    assert long[:end] == short[:end]
    assert end > 20


def test_a_storage_that_keeps_the_live_state_is_found():
    """snapshot_immutable reads what was stored."""

    class Aliasing(InMemoryCheckpointStorage):
        async def save(self, checkpoint):
            self._checkpoints[checkpoint.checkpoint_id] = checkpoint
            return checkpoint.checkpoint_id

        async def load(self, checkpoint_id):
            found = self._checkpoints[checkpoint_id]
            found.state["order"] = "changed by whoever loaded it"
            return found

    factories = {"aliasing": lambda _: Aliasing()}
    execution = executed(run_and_resume, storage="aliasing", factories=factories, oracles=("snapshot-immutable",))
    assert [violation.oracle for violation in execution.violations] == ["snapshot_immutable"]


def test_a_run_that_cancels_a_task_of_its_caller_is_found():
    """Ownership sees who cancels whom."""
    mine = []

    @step
    async def rude(order: int) -> str:
        """Cancel what is not its own."""
        mine[0].cancel()
        return "done"

    @workflow
    async def rude_flow(order: int) -> str:
        """Run one step."""
        return await rude(order)

    async def program(durable):
        mine[:] = [asyncio.create_task(harness.point("mine"), name="mine")]
        await asyncio.sleep(0)
        await durable.run(rude_flow, 7)

    execution = executed(program, oracles=("ownership",))
    assert [violation.message for violation in execution.violations] == [
        "run 0 cancelled the task point, which belongs to no run"
    ]


def test_a_timeout_of_a_step_is_its_own_business():
    """Tasks of the run may cancel one another."""

    @step
    async def impatient(order: int) -> str:
        """Give up."""
        try:
            async with asyncio.timeout(0.001):
                await asyncio.wait_for(asyncio.gather(asyncio.sleep(5), asyncio.sleep(6)), 7)
        except TimeoutError:
            return "late"
        return "done"

    @workflow
    async def impatient_flow(order: int) -> str:
        """Run one step."""
        return await impatient(order)

    async def program(durable):
        run = await durable.run(impatient_flow, 7)
        assert run.outputs == ["late"]

    execution = executed(program)
    assert (execution.ending.kind, execution.violations) == ("returned", ())


@pytest.mark.slow
def test_a_save_that_never_finishes_ends_with_a_cancellation():
    """Somebody loses patience; only a fix that shields the save without a limit makes the run hang for ever."""

    async def program(durable):
        run = await durable.run(flow, 7)
        assert run.ending in ("returned", "cancelled")

    for fix, oracle in (("", None), ("shielded-save", "progress")):
        scenario = Scenario("test", program, {"memory": None}, oracles=(), shapes=False, faults=("hang",))
        target = scenario_target(scenario, "memory", fix=fix)
        found = search(target, phases=make_phases("sweep", rung=target.rung), budget=40).counterexample
        assert (None if found is None else found.violation.oracle) == oracle
        if found is not None:
            (decision,) = found.execution.schedule.decisions
            assert decision.option == "_on_step_completed/save#1: never finishes"


@pytest.mark.parametrize(
    ("clock", "distinct", "ordered"),
    [("increasing", True, True), ("coarse:0.0156", False, True), ("frozen", False, True), ("stepback", True, False)],
)
def test_a_scenario_names_its_clock(clock, distinct, ordered):
    """Timestamps order, tie, stand still, or go back now and then."""

    async def program(durable):
        for message in range(6):
            await durable.run(flow, message)

    execution = executed(program, clock=clock, oracles=())
    stamps = [event.data["timestamp"] for event in execution.journal if event.kind == "save.called"]
    assert len(stamps) == 18
    assert (len(set(stamps)) == len(stamps)) == distinct
    assert (sorted(stamps) == stamps) == ordered


def test_the_clock_of_a_scenario_goes_into_its_tokens():
    """And the command line may say otherwise."""
    assert target_of(run_and_resume, clock="frozen").setup["clock"] == "frozen"
    scenario = Scenario("test", run_and_resume, {"memory": None}, clock="frozen")
    assert scenario_target(scenario, "memory", clock="stepback").setup["clock"] == "stepback"


@pytest.mark.slow
def test_an_oracle_is_switched_off_with_a_reason_that_the_report_prints():
    """The others go on judging."""
    reason = "the tail is meant to run on"

    @workflow
    async def leaving(order: int) -> str:
        """Leave a task behind."""
        asyncio.get_running_loop().create_task(charge(order))
        return await ship(order)

    async def program(durable):
        await durable.run(leaving, 7)
        raise AssertionError("to see a report")

    loud = target_of(program, oracles=("no-zombies",))
    quiet = target_of(program, oracles=("all",), without={"no-zombies": reason})
    assert len(quiet.judges) == len(plugin_names("harness.oracles")) - 1
    reports = []
    for target in (loud, quiet):
        found = search(target, phases=make_phases(rung=target.rung), budget=5).counterexample
        reports.append(plain(failure_report(explanation_of(target, found, title="test"), replay="-")))
    assert "no_zombies is violated" in reports[0]
    assert "assertion is violated" in reports[1]
    assert f"\n  left out  no-zombies ({reason})\n" in reports[1]


def test_an_oracle_is_not_switched_off_without_a_reason():
    """One line, at import."""
    with pytest.raises(UsageError, match=r"^scenario 'test': oracle 'no-zombies' is switched off without a reason$"):
        scenario("test", storages=["memory"], without={"no-zombies": " "})


@pytest.mark.slow
def test_the_moments_inside_storage_operations_are_tried_first():
    """A cancellation there is the first that is tried, on top of the default order."""
    target = target_of(run_and_resume, storage="remote", oracles=(), faults=("cancel",))
    with target.open() as runner:
        recorder = Planned()
        runner.run(recorder)
        fault = next(point for point in recorder.seen if point.kind == "fault")
        first = {value for value in range(5, 60) if fault.weigh(value) <= LATER}
        saving = set()
        for value in range(5, 60):
            execution = runner.run(Planned({fault.index: value}))
            if any(event.kind == "save.cancelled" and event.run == 0 for event in execution.journal):
                saving.add(value)
    assert len(saving) >= 4
    assert saving <= first
    assert len(first) < 20


def test_write_order_returns_what_was_written_last(tmp_path):
    """Whatever the timestamps say."""

    async def program(durable):
        run = await durable.run(flow, 7)
        storage = durable.storage.inner
        first = min(storage._checkpoints.values(), key=lambda checkpoint: checkpoint.timestamp)
        await storage.save(first)
        latest = await storage.get_latest(workflow_name=run.name)
        assert latest.checkpoint_id == first.checkpoint_id

    assert "write-order" in PLUGIN.storages()
    scenario = Scenario("test", program, {"write-order": None}, oracles=(), shapes=False)
    with scenario_target(scenario, "write-order").open() as runner:
        assert runner.run(None).ending.kind == "returned"
