"""microsoft/agent-framework #7787, PR #7798: a dropped stream keeps the run guard.

The consumer of a functional workflow's stream stops and forgets it. Its generator is finalized later, and the clean-up
that would release the guard never runs: the instance accepts no run any more. Fixed in 1.18.
"""

from agent_framework import step, workflow

import harness


@step
async def look_up(question: str) -> str:
    """Ask a service."""
    await harness.point("service")
    return f"answer to {question}"


@workflow
async def chat_flow(question: str) -> str:
    """Answer one question."""
    return await look_up(question)


@harness.scenario(
    "issue_7787",
    storages=["memory"],
    reference="microsoft/agent-framework #7787",
    affected=">=1.2,<1.18",
    oracles=("guard-released",),
    faults=("stream",),
    budget=200,
)
async def issue_7787(durable):
    """An instance whose stream was dropped accepts the next run when all is quiet."""
    dropped = await durable.run(chat_flow, "first", stream=True)
    await durable.quiet()
    await durable.run(chat_flow, "second", instance=dropped.instance)
