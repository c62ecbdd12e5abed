"""The command ``harness prove``.

Owns its options, its output and its exit status; must not decide what a proof is.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

import click

from harness.adapters.loading import load_scenarios, load_with_variants
from harness.adapters.recipes import ScenarioRecipe
from harness.commands.pools import default_jobs, open_pool
from harness.commands.progress import moving_line
from harness.commands.recorded import split
from harness.commands.status import INTERRUPTED, one_object, status_of
from harness.commands.storages import usable_here
from harness.model.registry import unknown
from harness.report.proof import proof_object, proof_report
from harness.search.certificate import Mode
from harness.search.pool import Pool, Shared
from harness.search.prove import prove as run_proof

MODES = ("fingerprint", "certain")


@click.command()
@click.argument("scenario", metavar="SCENARIO")
@click.option("--storage", multiple=True, help="Storage to run on; repeatable. Default: all of the scenario.")
@click.option("--fix", default="", help="Fix candidate to apply to the framework.")
@click.option("--rung", help="Highest assumption: exact, latency or relaxed.")
@click.option("--budget", type=click.IntRange(min=1), help="Executions per storage. Default: no limit.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Seconds per storage. Default: no limit.")
@click.option("--mode", default=MODES[0], show_default=True, help="fingerprint: prune equal states; certain: do not.")
@click.option("--bound", type=click.IntRange(min=0), help="Most deviations of a schedule. Default: no bound.")
@click.option("--clock", help="increasing, coarse:SECONDS, frozen or stepback. Default: as the scenario says.")
@click.option("--shapes/--no-shapes", default=None, help="Also try how saves wait. Default: as the scenario says.")
@click.option("--faults", help="What may happen to a run, comma-separated. Default: as the scenario says.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that share the search. Default: one per core.")
@click.option("--cluster", metavar="ADDRESS", help="Share the search on this Dask cluster instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def prove(
    scenario: str,
    storage: tuple[str, ...],
    fix: str,
    rung: str | None,
    budget: int | None,
    seconds: float | None,
    mode: str,
    bound: int | None,
    clock: str | None,
    shapes: bool | None,
    faults: str | None,
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Execute every schedule of SCENARIO and of its variants: a certificate, or all distinct failing outcomes.

    Exit status: 0 proved, 1 a violation, 3 the budget ended first or something was left out.
    """
    if mode not in MODES:
        raise unknown("mode", name=mode, known=MODES)
    recipes = [
        ScenarioRecipe(reference, item.name, name, fix, rung, clock, shapes, split(faults))
        for reference, item in load_with_variants(scenario)
        for name in storage or usable_here(item)
    ]
    for recipe in recipes:
        recipe.target()  # a wrong name is told before anything runs
    status = 0
    objects: list[dict[str, Any]] = []
    with open_pool(jobs, default=default_jobs(), cluster=cluster) as pool:
        for recipe in recipes:
            done = _prove_one(recipe, pool, mode=cast(Mode, mode), bound=bound, budget=budget, seconds=seconds)
            objects.append(done.result)
            if not as_json:
                click.echo(done.report + "\n")
            status = _worst(status, done.status)
            if done.status == INTERRUPTED:
                break
    if as_json:
        click.echo(json.dumps(one_object(objects), indent=2))
    return status


class Done(NamedTuple):
    """What a proof came to."""

    result: dict[str, Any]
    report: str
    status: int


def _prove_one(recipe: ScenarioRecipe, pool: Pool | None, **limits: Any) -> Done:
    target = recipe.target()
    shared = None if pool is None else Shared(pool, recipe.anywhere())
    with moving_line(target) as tick:
        proof = run_proof(target, progress=tick, shared=shared, **limits)
    title = f"{recipe.name} on {recipe.storage}{f' with {recipe.fix}' if recipe.fix else ''}"
    report = proof_report(proof, title=title, replay=_replay(recipe))
    return Done(
        proof_object(proof, setup=target.setup), report, status_of(proof.verdict, interrupted=proof.interrupted)
    )


def _replay(recipe: ScenarioRecipe) -> str:
    """Return the command line that replays a token of this target."""
    several = recipe.reference.endswith(".py") and len(load_scenarios(recipe.reference)) > 1
    return f"harness replay {recipe.reference}{f'::{recipe.name}' if several else ''}"


def _worst(one: int, other: int) -> int:
    """Return the status that matters more: interrupted, not deterministic, a violation, unfinished, proved."""
    order = (0, 3, 1, 4, INTERRUPTED)
    return max(one, other, key=order.index)


PLUGIN = prove
