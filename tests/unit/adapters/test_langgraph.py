"""LangGraph's graphs on its checkpointers: what the journal says, endings and resumes as choices of the search."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs langgraph: `make neighbours`")
pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs langgraph-checkpoint-sqlite: `make neighbours`")

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

import harness
from harness.adapters.langgraph import PLUGIN
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.errors import UsageError
from harness.model.scenario import Scenario
from harness.search.portfolio import search
from harness.search.recording import Planned

pytestmark = pytest.mark.slow

ORACLES = ("completed-steps-restored", "progress")


class State(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


async def charge(_state: State) -> Any:
    await harness.point("charge")
    return {"done": ["charged"]}


async def ship(_state: State) -> Any:
    harness.effect("began")
    try:
        await harness.point("ship")
        harness.effect("went on")
    finally:
        harness.effect("cleanup")
    return {"done": ["shipped"]}


async def flaky(_state: State) -> Any:
    await harness.point("call")
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return {"done": ["shipped"]}


async def ask(_state: State) -> Any:
    return {"done": [interrupt("approve?")]}


def graph_of(*nodes: Any, parallel: bool = False) -> Any:
    """Return a function that builds a graph of ``nodes``, one after the other or side by side."""

    def graph() -> Any:
        made = StateGraph(State)
        for node in nodes:
            made.add_node(node.__name__, node)
        names = [node.__name__ for node in nodes]
        for before, after in zip([START, *names], [*names, END], strict=True) if not parallel else ():
            made.add_edge(before, after)
        for name in names if parallel else ():
            made.add_edge(START, name)
            made.add_edge(name, END)
        return made

    return graph


IN_ORDER = graph_of(charge, ship)
SIDE_BY_SIDE = graph_of(charge, flaky, parallel=True)


def target_of(program: Any, *, storage: str = "memory", shapes: bool = False, **options: Any) -> Any:
    """Return a target for a program of one durable."""
    options = {"oracles": (), **options}
    return scenario_target(
        Scenario("test", program, {storage: None}, adapter="langgraph", shapes=shapes, **options), storage
    )


def run_once(program: Any, **options: Any) -> Any:
    """Return the default execution of a program."""
    with target_of(program, **options).open() as runner:
        execution = runner.run(None)
    assert execution.ending.kind == "returned", execution.ending
    return execution


def steps(execution: Any, run: int) -> list[tuple[str, str]]:
    """Return what happened to which node in a run."""
    return [
        (event.kind.removeprefix("step."), event.subject)
        for event in execution.journal
        if event.run == run and event.kind.startswith("step.")
    ]


@pytest.mark.parametrize("storage", PLUGIN.storages())
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_finished_node_is_restored_after_its_sibling_failed(storage, durability):
    """The journal says so, on every checkpointer and in every durability mode."""

    async def program(durable: Any) -> None:
        run = await durable.run(SIDE_BY_SIDE, {"done": []}, durability=durability)
        assert (run.ending, repr(run.error)) == ("failed", "RuntimeError('service unavailable')")
        resumed = await durable.resume(run)
        assert resumed.outputs == [{"done": ["charged", "shipped"]}]

    execution = run_once(program, storage=storage, oracles=ORACLES)
    assert steps(execution, 0)[-2:] == [("completed", "charge"), ("failed", "flaky")]
    assert steps(execution, 1) == [("restored", "charge"), ("invoked", "flaky"), ("completed", "flaky")]
    assert execution.violations == ()


def test_a_put_passes_separate_control_points_and_says_what_it_covers():
    """The writes cover their node, the checkpoint all of its graph."""

    async def program(durable: Any) -> None:
        await durable.run(IN_ORDER, {"done": []}, durability="sync")

    execution = run_once(program, storage="remote")
    saves = [(event.subject, event.kind) for event in execution.journal if event.kind.startswith("save.")]
    for name in ("put#1", "writes#2"):
        assert [kind for subject, kind in saves if subject == name] == [
            "save.called",
            "save.snapshot",
            "save.committed",
            "save.acknowledged",
        ]
    called = {event.subject: event.data for event in execution.journal if event.kind == "save.called"}
    charged, shipped = "charge({'done': []})@1", "ship({'done': ['charged']})@2"
    assert called["writes#2"]["covers"] == [charged]
    last = max(name for name in called if name.startswith("put"))
    assert called[last]["covers"][-2:] == [charged, shipped]
    assert [data["supersedes"] for name, data in called.items() if name.startswith("put")] == [False, True, True, True]


@pytest.mark.parametrize("storage", PLUGIN.storages())
@pytest.mark.parametrize(
    ("durability", "fault"), [("async", "cancel"), ("async", "timeout"), ("exit", "crash"), ("async", "crash")]
)
def test_a_run_ends_at_every_moment_and_resumes(storage, durability, fault):
    """Whatever happens to it, the resume ends with the outputs, and nothing that was promised is executed again."""

    async def program(durable: Any) -> None:
        run = await durable.run(IN_ORDER, {"done": []}, durability=durability)
        await durable.quiet()
        resumed = await durable.resume(run)
        if resumed.ending == "returned":
            assert resumed.outputs == [{"done": ["charged", "shipped"]}]

    target = target_of(program, storage=storage, faults=(fault,), oracles=ORACLES)
    result = search(target, phases=make_phases("sweep", rung=target.rung), budget=120)
    assert result.counterexample is None, result.counterexample.violation


def test_a_second_cancellation_loses_what_exit_would_have_saved():
    """With durability "exit" the save is at the end, and the second cancellation reaches the task that does it."""

    async def program(durable: Any) -> None:
        run = await durable.run(IN_ORDER, {"done": []}, durability="exit")
        await durable.quiet()
        await durable.resume(run)

    target = target_of(program, faults=("cancel",), oracles=ORACLES)
    found = search(target, phases=make_phases("sweep", rung=target.rung), budget=120).counterexample
    assert found.violation.oracle == "completed_steps_restored"
    assert [decision.option.partition(" at ")[0] for decision in found.execution.schedule.decisions] == [
        "run 0: cancelled twice"
    ]


def test_no_finally_runs_in_a_crash():
    """And it does in a cancellation."""

    async def program(durable: Any) -> None:
        await durable.run(IN_ORDER, {"done": []})

    seen = {}
    for fault in ("cancel", "crash"):
        with target_of(program, faults=(fault,)).open() as runner:
            recorder = Planned()
            runner.run(recorder)
            point = next(point for point in recorder.seen if point.kind == "fault")
            for value in range(1, min(point.options, 80)):
                execution = runner.run(Planned({point.index: value}), tracing=True)
                effects = [event.subject for event in execution.journal if event.kind == "effect"]
                if "began" in effects and "went on" not in effects:
                    seen.setdefault(fault, set()).add("cleanup" in effects)
    assert seen == {"cancel": {True}, "crash": {False}}


def test_a_consumer_closes_or_drops_the_stream():
    """After any event; the resume ends with the outputs."""

    async def program(durable: Any) -> None:
        run = await durable.run(IN_ORDER, {"done": []})
        await durable.quiet()
        resumed = await durable.resume(run)
        if resumed.ending == "returned":
            assert resumed.outputs == [{"done": ["charged", "shipped"]}]

    endings = set()
    with target_of(program, faults=("stream",)).open() as runner:
        recorder = Planned()
        runner.run(recorder)
        index = next(point.index for point in recorder.seen if point.kind == "fault")
        for value in range(1, 9):
            execution = runner.run(Planned({index: value}))
            assert execution.ending.kind == "returned", (value, execution.ending)
            endings |= {event.data["how"] for event in execution.journal if event.kind == "run.ended"}
    assert endings == {"returned", "closed", "dropped"}


def test_a_resume_varies_by_checkpoint_instance_and_time():
    """All variants end."""

    async def program(durable: Any) -> None:
        run = await durable.run(SIDE_BY_SIDE, {"done": []})
        await durable.resume(run)

    endings = {}
    with target_of(program, faults=("resume",)).open() as runner:
        recorder = Planned()
        runner.run(recorder)
        for point in recorder.seen:
            for value in range(1, point.options) if point.kind == "fault" else ():
                execution = runner.run(Planned({point.index: value}), tracing=True)
                option = execution.schedule.decisions[0].option.partition(": ")[2]
                endings[option] = execution.ending.kind
    assert endings == dict.fromkeys(
        ["when quiet", "second latest", "third latest", "first", "same instance", "two instances"], "returned"
    )


def test_a_put_fails_before_or_after_its_commit():
    """The run fails with the injected error."""
    seen = set()

    async def program(durable: Any) -> None:
        run = await durable.run(IN_ORDER, {"done": []})
        seen.add((run.ending, "" if run.error is None else str(run.error)))

    with target_of(program, faults=("storage",)).open() as runner:
        recorder = Planned()
        runner.run(recorder)
        index = next(point.index for point in recorder.seen if point.kind == "fault")
        for value in (1, 2):
            runner.run(Planned({index: value}))
    assert seen == {
        ("returned", ""),
        ("failed", "put#1 failed before its commit"),
        ("failed", "put#1 failed after its commit"),
    }


def test_a_pause_is_answered():
    """The caller sees the request; the resume with the answer ends."""

    async def program(durable: Any) -> None:
        run = await durable.run(graph_of(charge, ask), {"done": []})
        assert (run.ending, len(run.requests)) == ("returned", 1)
        resumed = await durable.resume(run, answer="approved")
        assert resumed.outputs == [{"done": ["charged", "approved"]}]

    run_once(program, storage="sqlite", oracles=ORACLES)


@pytest.mark.parametrize("storage", PLUGIN.storages())
def test_a_cycle_and_a_subgraph_give_no_false_alarm(storage):
    """A call is a node in a superstep of its own graph, so that the rounds of a cycle differ."""

    async def again(state: State) -> Any:
        await harness.point("again")
        return {"done": ["again"]}

    def cycle() -> Any:
        inner = StateGraph(State)
        inner.add_node("ship", ship)
        inner.add_edge(START, "ship")
        made = StateGraph(State)
        made.add_node("again", again)
        made.add_node("inner", inner.compile())
        made.add_edge(START, "again")
        made.add_conditional_edges("again", lambda state: "again" if len(state["done"]) < 3 else "inner")
        made.add_edge("inner", END)
        return made

    async def program(durable: Any) -> None:
        run = await durable.run(cycle, {"done": []})
        await durable.quiet()
        await durable.resume(run)

    target = target_of(program, storage=storage, faults=("cancel", "crash"), oracles=ORACLES)
    result = search(target, phases=make_phases("sweep", rung=target.rung), budget=150)
    assert result.counterexample is None, result.counterexample.violation


def test_what_is_no_graph_or_no_checkpointer_is_refused_in_one_line():
    """And so is an unknown durability."""

    async def program(durable: Any) -> None:
        with pytest.raises(UsageError, match=r"^42 is not a graph: "):
            await durable.run(42, {})
        with pytest.raises(UsageError, match=r"^unknown durability 'never' \(known: sync, async, exit\)$"):
            await durable.run(IN_ORDER, {}, durability="never")

    run_once(program)

    async def on_nothing(durable: Any) -> None:
        with pytest.raises(UsageError, match=r"^<object .* is not a checkpointer: derive from "):
            await durable.run(IN_ORDER, {})

    scenario = Scenario("test", on_nothing, {"own": lambda _: object()}, adapter="langgraph", oracles=())
    with scenario_target(scenario, "own").open() as runner:
        assert runner.run(None).ending.kind == "returned"


def test_an_oracle_that_cannot_judge_graphs_is_refused_with_the_reason():
    """Where it is named; "all" leaves it out and says so."""

    async def program(durable: Any) -> None:
        await durable.resume(await durable.run(IN_ORDER, {"done": []}))

    with pytest.raises(UsageError, match=r"^the oracle 'guard-released' cannot judge langgraph: one graph may"):
        target_of(program, oracles=("guard-released",))
    assert list(target_of(program, oracles=("all",)).without) == ["decision-stable", "guard-released"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("storage", PLUGIN.storages())
def test_every_oracle_judges_without_a_false_alarm(storage, durability):
    """Runs that fail, ask and are resumed, in default order and with single deviations."""

    async def program(durable: Any) -> None:
        for graph in (SIDE_BY_SIDE, graph_of(charge, ask), graph_of(charge, ship)):
            run = await durable.run(graph, {"done": []}, durability=durability)
            await durable.quiet()
            await durable.resume(run, answer="approved" if run.requests else None)

    target = target_of(program, storage=storage, oracles=("all",))
    result = search(target, phases=make_phases("sweep", rung=target.rung), budget=8)
    assert result.counterexample is None, result.counterexample.violation


def test_a_stored_checkpoint_that_changes_is_seen():
    """Digests are of the values, however a checkpointer keeps them."""

    async def program(durable: Any) -> None:
        await durable.run(IN_ORDER, {"done": []})
        for (_, _, channel, _), (kind, _) in list(durable.saver.blobs.items()):
            if channel == "done":
                broken = durable.saver.serde.dumps_typed(["nothing"])
                durable.saver.blobs.update({key: broken for key in durable.saver.blobs if key[2] == "done" and kind})

    with target_of(program, oracles=("snapshot-immutable",)).open() as runner:
        (violation,) = runner.run(None).violations
    assert violation.oracle == "snapshot_immutable"


def test_a_second_child_of_a_checkpoint_is_seen():
    """Whoever puts it: here another process, which goes on from the first checkpoint."""

    async def program(durable: Any) -> None:
        run = await durable.run(IN_ORDER, {"done": []})
        first = [item async for item in durable.saver.alist(run.notes["config"])][-1]
        await durable.runs[0].instance.aupdate_state(first.config, {"done": ["twice"]}, as_node="charge")

    with target_of(program, oracles=("linear-lineage",)).open() as runner:
        (violation,) = runner.run(None).violations
    assert "are both children of put#1" in violation.message


def test_a_request_that_is_nowhere_stored_is_seen():
    """With durability "exit" the caller of a stream sees the request before anything is put."""

    async def program(durable: Any) -> None:
        run = await durable.run(graph_of(charge, ask), {"done": []}, durability="exit", stream=True)
        await durable.quiet()
        await durable.resume(run, answer="approved" if run.ending == "returned" else None)

    target = target_of(program, oracles=("request-durable",), faults=("crash",))
    found = search(target, phases=make_phases("sweep", rung=target.rung), budget=60).counterexample
    assert found.violation.oracle == "request_durable"


@pytest.mark.parametrize("storage", PLUGIN.storages())
def test_asyncio_runs_the_same_program(storage, tmp_path):
    """On the stock loop nothing is injected."""

    async def main() -> None:
        storage_made = PLUGIN.make_storage(storage, tmp_path)
        durable = PLUGIN.durable(storage_made, shapes=True, faults=["cancel"])
        resumed = await durable.resume(await durable.run(SIDE_BY_SIDE, {"done": []}))
        assert resumed.outputs == [{"done": ["charged", "shipped"]}]
        if hasattr(storage_made, "close"):
            storage_made.close()

    asyncio.run(main())
