"""openai/openai-agents-python #1658: the end of a stream cancels the save of the session.

The run marks itself complete, and then awaits the save of its last turn. A consumer that was busy at that moment
finds the queue empty and the run complete: the stream ends and cancels the run's task, and with it the save. The next
run on the session does not know of the tool that was called, and calls it again.
"""

from typing import Any

import harness


async def busy(_event: Any) -> None:
    """Do something with an event, for an unknown time."""
    await harness.point("consumer")


def order_agent() -> Any:
    """Build an agent that charges the order unless the conversation says that it did."""
    from agents import Agent, function_tool

    from harness.adapters.openai_agents import ScriptedModel

    @function_tool
    async def charge(order: int) -> str:
        """Call a payment service."""
        await harness.point("call")
        harness.effect("charge")
        return f"charged order {order}"

    def decide(conversation: list[Any]) -> str | None:
        charged = any(item.get("type") == "function_call_output" for item in conversation)
        return None if charged else '{"order": 7}'

    return Agent(
        name="orders", model=ScriptedModel("charge", decide), tools=[charge], tool_use_behavior="stop_on_first_tool"
    )


@harness.scenario(
    "openai_agents_1658",
    storages=["memory", "remote", "sqlite"],
    adapter="openai-agents",
    package="openai-agents",
    affected="<0.3.1",
    breaks_on=("remote", "sqlite"),
    reference="openai/openai-agents-python #1658",
    shapes=False,
    budget=100,
)
async def openai_agents_1658(durable):
    """A tool that completed is in the session when the stream of its run has ended."""
    run = await durable.run(order_agent, "charge order 7", consumer=busy)
    resumed = await durable.resume(run, "and now?")
    assert (run.ending, resumed.ending) == ("returned", "returned"), (run.error, resumed.error)
