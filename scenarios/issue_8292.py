"""microsoft/agent-framework #8292: cached results keyed by the order of arrival.

Two branches call one step. On replay the cached steps before that call return without waiting, so the branch that
was second comes first, and each branch gets the result of the other. Fixed in 1.20.
"""

import asyncio

from agent_framework import step, workflow

import harness


@step
async def find_account(owner: str) -> str:
    """Look the account up."""
    await harness.point(f"find {owner}")
    return f"account of {owner}"


@step
async def read_balance(account: str) -> str:
    """Ask the bank."""
    await harness.point("bank")
    return f"balance in {account}"


@step
async def send_report(text: str) -> str:
    """Call a service that fails the first time."""
    if harness.attempt() == 0:
        raise RuntimeError("service unavailable")
    return text


async def balance_of(owner: str) -> str:
    """Two steps, one after the other."""
    return await read_balance(await find_account(owner))


@workflow
async def report_flow(owners: list[str]) -> str:
    """Read the balances side by side, then report them."""
    balances = await asyncio.gather(*(balance_of(owner) for owner in owners))
    return await send_report("; ".join(balances))


@harness.scenario(
    "issue_8292",
    storages=["memory"],
    reference="microsoft/agent-framework #8292",
    affected=">=1.2,<1.20",
    oracles=("replay-identity",),
    budget=200,
)
async def issue_8292(durable):
    """Each of two calls of one step gets its own result again on replay."""
    run = await durable.run(report_flow, ["ann", "bob"])
    await durable.resume(run)
