"""Workflows that the search makes up: steps in sequence, side by side, in groups, under limits.

Workflow, failures, await shapes and order are one choice sequence, so that a counterexample is the smallest workflow
with the smallest schedule.
"""

import harness
from harness.adapters.agent_framework.generated import PLAIN, draw_flow, run_generated


@harness.scenario(
    "generated",
    storages=["memory", "remote"],
    reference="microsoft/agent-framework #9615, found in a generated workflow",
    affected=">=1.2,<1.24",
    breaks_on=("remote",),
    budget=300,
)
async def generated(durable):
    """What a generated workflow completed is restored, and its result is what a plain model says."""
    await run_generated(durable, draw_flow(features=PLAIN).message)
