"""Graph workflows under ``durable``: runs, resumes, requests, streams."""

import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler

import harness
from harness.adapters.targets import scenario_target
from harness.model.scenario import Scenario


class Start(Executor):
    """Sends an order to two workers."""

    @handler
    async def begin(self, order: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(order)


class Work(Executor):
    """Does something that takes a while."""

    @handler
    async def work(self, order: int, ctx: WorkflowContext[str]) -> None:
        await harness.point("work")
        await ctx.send_message(f"{self.id} {order}")


class Join(Executor):
    """Takes both."""

    @handler
    async def join(self, done: list[str], ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(", ".join(sorted(done)))


class Approve(Executor):
    """Asks a human."""

    @handler
    async def ask(self, order: int, ctx: WorkflowContext[None, str]) -> None:
        await ctx.request_info(order, str)

    @response_handler
    async def answered(self, original: int, response: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(f"order {original}: {response}")


def joining():
    """Build a workflow with a join."""
    start, left, right, join = Start(id="start"), Work(id="left"), Work(id="right"), Join(id="join")
    return (
        WorkflowBuilder(name="joining", start_executor=start, output_from=[join])
        .add_fan_out_edges(start, [left, right])
        .add_fan_in_edges([left, right], join)
        .build()
    )


def asking():
    """Build a workflow that pauses."""
    approve = Approve(id="approve")
    return WorkflowBuilder(name="asking", start_executor=approve, output_from=[approve]).build()


def executed(program, *, oracles=("all",), storage="memory", **options):
    """Return the execution of ``program`` in default order."""
    scenario = Scenario("test", program, {storage: None}, oracles=oracles, shapes=False, **options)
    with scenario_target(scenario, storage).open() as runner:
        return runner.run(None)


@pytest.mark.parametrize("storage", ["memory", "file", "sqlite"])
def test_a_run_returns_and_every_checkpoint_resumes(storage):
    """With the same outputs, or with nothing when they had been put out before."""

    async def program(durable):
        run = await durable.run(joining, 7)
        assert (run.ending, run.outputs) == ("returned", ["left 7, right 7"])
        found = await durable.storage.list_checkpoints(workflow_name="joining")
        assert len(found) == 4
        resumed = await durable.resume(run)
        assert (resumed.ending, resumed.outputs) == ("returned", [])
        assert resumed.instance is not run.instance
        for checkpoint in sorted(found, key=lambda item: item.timestamp)[:3]:
            resumed = await durable.resume(run, checkpoint=checkpoint.checkpoint_id)
            assert (resumed.ending, resumed.outputs) == ("returned", run.outputs)

    execution = executed(program, storage=storage)
    assert (execution.ending.kind, execution.violations) == ("returned", ())


def test_a_second_message_runs_on_the_same_instance():
    """And continues its chain of checkpoints."""

    async def program(durable):
        run = await durable.run(joining, 7)
        again = await durable.run(joining, 8, instance=run.instance)
        assert again.outputs == ["left 8, right 8"]

    execution = executed(program)
    assert (execution.ending.kind, execution.violations) == ("returned", ())
    roots = [e for e in execution.journal if e.kind == "save.committed" and e.data["previous"] is None]
    assert len(roots) == 1


def test_a_request_is_answered_on_a_fresh_instance():
    """The caller sees the request; the answer ends the workflow."""

    async def program(durable):
        run = await durable.run(asking, 7)
        (request,) = run.requests
        resumed = await durable.resume(run, responses={request: "yes"})
        assert resumed.outputs == ["order 7: yes"]

    execution = executed(program)
    assert (execution.ending.kind, execution.violations) == ("returned", ())


def test_a_stream_is_consumed_event_by_event():
    """The journal has what the consumer saw."""

    async def program(durable):
        run = await durable.run(joining, 7, stream=True)
        assert run.outputs == ["left 7, right 7"]
        assert [event.type for event in run.events if event.type == "output"] == ["output"]

    execution = executed(program)
    assert (execution.ending.kind, execution.violations) == ("returned", ())
    assert [e.subject for e in execution.journal if e.kind == "executor.output" and e.run == 0] == ["join"]


class Flaky(Executor):
    """Fails the first time, later than the others."""

    @handler
    async def fail(self, order: int, ctx: WorkflowContext[str]) -> None:
        await harness.point("one")
        await harness.point("two")
        if harness.attempt() == 0:
            raise RuntimeError("service unavailable")
        await ctx.send_message(f"{self.id} {order}")


def failing():
    """Build a workflow with a join, one half of which fails."""
    start, left, right, join = Start(id="start"), Work(id="left"), Flaky(id="right"), Join(id="join")
    return (
        WorkflowBuilder(name="failing", start_executor=start, output_from=[join])
        .add_fan_out_edges(start, [left, right])
        .add_fan_in_edges([left, right], join)
        .build()
    )


def test_a_superstep_that_failed_runs_completed_executors_again_by_design():
    """completed_steps_restored sees it, and a scenario says that it is meant."""

    async def program(durable):
        run = await durable.run(failing, 7)
        assert run.ending == "failed"
        resumed = await durable.resume(run)
        assert resumed.outputs == ["left 7, right 7"]

    (violation,) = executed(program).violations
    assert violation.oracle == "completed_steps_restored"
    assert violation.message.startswith("left(7) completed in run 0")
    reason = "a graph superstep runs completed executors again by design"
    assert executed(program, without={"completed-steps-restored": reason}).violations == ()


@pytest.mark.slow
def test_a_crash_leaves_what_was_committed():
    """The resume ends with the outputs, at whatever moment the process died."""
    from harness.search.recording import Planned

    async def program(durable):
        run = await durable.run(joining, 7)
        await durable.resume(run)

    scenario = Scenario(
        "test", program, {"memory": None}, oracles=("restore-complete",), shapes=False, faults=("crash",)
    )
    endings = set()
    with scenario_target(scenario, "memory").open() as runner:
        recorder = Planned()
        runner.run(recorder)
        fault = next(point.index for point in recorder.seen if point.kind == "fault")
        for moment in range(1, 16):
            execution = runner.run(Planned({fault: moment}))
            assert execution.violations == ()
            endings.add(next(e.data["how"] for e in execution.journal if e.kind == "run.ended"))
    assert endings >= {"crashed"}
