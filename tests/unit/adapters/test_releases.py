"""Older releases of agent-framework: what they lack is found by looking."""

import asyncio
import subprocess
import sys

import agent_framework
import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, step, workflow

import harness
from harness.adapters.agent_framework.durable import build
from harness.adapters.targets import scenario_target


@step
async def charge(order: int) -> int:
    """Take one wait."""
    await harness.point("bank")
    return order


@workflow
async def order_flow(order: int) -> int:
    """Run one step."""
    return await charge(order)


class Echo(Executor):
    """Yields what it gets."""

    @handler
    async def echo(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)


def graph():
    """Build a graph of one executor."""
    return WorkflowBuilder(name="graph", start_executor=Echo(id="echo")).build()


def test_an_instance_in_place_of_a_definition_is_made_anew():
    """As a decorated function is before 1.14: no run guard and no replay state reach another execution."""
    instance = order_flow.build()
    made = build(instance)
    assert made is not instance
    assert (type(made), made.name, made.description) == (type(instance), instance.name, instance.description)
    assert asyncio.run(made.run(7)).get_outputs() == [7]


def test_a_graph_that_was_built_is_used_as_it_is():
    """It has no recipe; a function that builds one has."""
    made = graph()
    assert build(made) is made
    assert build(graph) is not made


def test_streams_that_cannot_be_closed_are_only_dropped(monkeypatch):
    """Before 1.20 a stream has no close()."""
    monkeypatch.delattr(agent_framework.ResponseStream, "close")

    @harness.scenario("leaving", storages=["memory"], faults=("stream",), oracles=())
    async def leaving(durable):
        run = await durable.run(order_flow, 7, stream=True)
        return run.ending

    target = scenario_target(leaving, "memory", shapes=False)
    with target.open() as runner:
        seen = []

        class Watching:
            """Notes what the fault of the stream may be."""

            def choose(self, point):
                if point.kind == "fault":
                    seen.extend(option for option in point.enabled[:4])
                return 0

        runner.run(Watching())
    assert seen
    assert not [option for option in seen if "closed" in option]


@pytest.mark.slow
def test_the_adapter_needs_no_functional_workflows():
    """Before 1.2 there are only graphs: they run, and the fixes change nothing."""
    code = """
import sys
sys.modules["agent_framework._workflows._functional"] = None
import asyncio
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler
import harness
from harness.adapters.targets import scenario_target

class Echo(Executor):
    @handler
    async def echo(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)

def graph():
    return WorkflowBuilder(name="graph", start_executor=Echo(id="echo")).build()

@harness.scenario("graphs", storages=["memory"])
async def graphs(durable):
    run = await durable.run(graph, "hello")
    await durable.resume(run)
    return run.outputs

for fix in ("", "save-on-failure", "shielded-save"):
    with scenario_target(graphs, "memory", shapes=False, fix=fix).open() as runner:
        execution = runner.run(None)
    print(execution.ending, execution.ending.value, execution.violations)
"""
    # agent_framework imports the module itself where it exists, so it is hidden from the adapter only
    code = code.replace("import sys\n", "import sys\nimport agent_framework\n", 1)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "returned ['hello'] ()\n" * 3
