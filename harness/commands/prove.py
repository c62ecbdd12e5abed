"""The command ``harness prove``.

Owns its options, its output and its exit status; must not decide what a proof is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import click

from harness.adapters.loading import load_scenarios
from harness.adapters.targets import scenario_target
from harness.model.registry import unknown
from harness.model.rung import Rung
from harness.report.proof import proof_object, proof_report
from harness.search.certificate import Mode, Proof
from harness.search.prove import prove as run_proof
from harness.search.target import Target

MODES = ("fingerprint", "certain")
STATUS = {"proved": 0, "violation": 1, "unfinished": 3, "nondeterministic": 4}
INTERRUPTED = 130


@click.command()
@click.argument("scenario", metavar="SCENARIO")
@click.option("--storage", multiple=True, help="Storage to run on; repeatable. Default: all of the scenario.")
@click.option("--fix", default="", help="Fix candidate to apply to the framework.")
@click.option("--rung", help="Highest assumption: exact, latency or relaxed.")
@click.option("--budget", type=click.IntRange(min=1), help="Executions per storage. Default: no limit.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Seconds per storage. Default: no limit.")
@click.option("--mode", default=MODES[0], show_default=True, help="fingerprint: prune equal states; certain: do not.")
@click.option("--bound", type=click.IntRange(min=0), help="Most deviations of a schedule. Default: no bound.")
@click.option("--clock", default="increasing", show_default=True, help="increasing, coarse:SECONDS, frozen, stepback.")
@click.option("--shapes/--no-shapes", default=None, help="Also try how saves wait. Default: as the scenario says.")
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
    clock: str,
    shapes: bool | None,
    as_json: bool,
) -> int:
    """Execute every schedule of SCENARIO: a certificate, or all distinct failing outcomes.

    Exit status: 0 proved, 1 a violation, 3 the budget ended first or something was left out.
    """
    if mode not in MODES:
        raise unknown("mode", name=mode, known=MODES)
    status = 0
    objects: list[dict[str, Any]] = []
    found = load_scenarios(scenario)
    for item in found:
        reference = scenario if len(found) == 1 or not scenario.endswith(".py") else f"{scenario}::{item.name}"
        targets = [
            scenario_target(
                item, name, fix=fix, shapes=shapes, rung=None if rung is None else _parse_rung(rung), clock=clock
            )
            for name in storage or item.storages
        ]
        for target in targets:
            with _progress(target) as tick:
                proof = run_proof(
                    target, mode=cast(Mode, mode), bound=bound, budget=budget, seconds=seconds, progress=tick
                )
            objects.append(proof_object(proof, setup=target.setup))
            if not as_json:
                title = f"{item.name} on {target.setup['storage']}{f' with {fix}' if fix else ''}"
                click.echo(proof_report(proof, title=title, replay=f"harness replay {reference}") + "\n")
            status = _worst(status, _status(proof))
            if proof.interrupted:
                break
        if status == INTERRUPTED:
            break
    if as_json:
        click.echo(json.dumps(_one_object(objects), indent=2))
    return status


def _worst(one: int, other: int) -> int:
    """Return the status that matters more: interrupted, not deterministic, a violation, unfinished, proved."""
    order = (0, 3, 1, 4, INTERRUPTED)
    return max(one, other, key=order.index)


def _status(proof: Proof) -> int:
    return INTERRUPTED if proof.interrupted else STATUS[proof.verdict]


def _parse_rung(text: str) -> Rung:
    try:
        return Rung.parse(text)
    except KeyError:
        raise unknown("rung", name=text, known=[rung.label for rung in Rung]) from None


def _one_object(objects: list[dict[str, Any]]) -> dict[str, Any]:
    first = next((item for item in objects if item["verdict"] == "violation"), objects[0])
    return first if len(objects) == 1 else {**first, "results": objects}


@contextmanager
def _progress(target: Target) -> Iterator[Callable[[int, str], None] | None]:
    """Show one line that moves while a proof runs on a terminal; nothing when piped."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(target.name) as status:

        def tick(executions: int, state: str) -> None:
            if executions % 5 == 1:
                status.update(f"{target.name} on {target.setup.get('storage', '')}: {executions} executions, {state}")

        yield tick


PLUGIN = prove
