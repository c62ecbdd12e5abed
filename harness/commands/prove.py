"""The command ``harness prove``.

Owns its options, its output and its exit status; must not decide what a proof is.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import click

from harness.adapters.loading import load_scenarios
from harness.adapters.targets import scenario_target
from harness.commands.storages import usable_here
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
@click.option("--clock", help="increasing, coarse:SECONDS, frozen or stepback. Default: as the scenario says.")
@click.option("--shapes/--no-shapes", default=None, help="Also try how saves wait. Default: as the scenario says.")
@click.option("--faults", help="What may happen to a run, comma-separated. Default: as the scenario says.")
@click.option("--jobs", type=click.IntRange(min=1), help="Storages proved at the same time. Default: one per core.")
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
    as_json: bool,
) -> int:
    """Execute every schedule of SCENARIO: a certificate, or all distinct failing outcomes.

    Exit status: 0 proved, 1 a violation, 3 the budget ended first or something was left out.
    """
    if mode not in MODES:
        raise unknown("mode", name=mode, known=MODES)
    if rung is not None and rung.upper() not in Rung.__members__:
        raise unknown("rung", name=rung, known=[known.label for known in Rung])
    found = load_scenarios(scenario)
    units = [
        Unit(scenario, item.name, name, fix, rung, clock, shapes, faults, cast(Mode, mode), bound, budget, seconds)
        for item in found
        for name in storage or usable_here(item)
    ]
    for unit in units:
        unit.target()  # a wrong name is told before anything runs
    status = 0
    objects: list[dict[str, Any]] = []
    for done in _run_all(units, jobs=min(len(units), jobs or os.cpu_count() or 1)):
        objects.append(done.result)
        if not as_json:
            click.echo(done.report + "\n")
        status = _worst(status, done.status)
    if as_json:
        click.echo(json.dumps(_one_object(objects), indent=2))
    return status


@dataclass(frozen=True, slots=True)
class Unit:
    """One proof to be run, in this process or in another."""

    reference: str
    name: str
    storage: str
    fix: str
    rung: str | None
    clock: str | None
    shapes: bool | None
    faults: str | None
    mode: Mode
    bound: int | None
    budget: int | None
    seconds: float | None

    def target(self) -> Target:
        """Return what is proved; raises UsageError for a name that does not exist."""
        (item,) = (item for item in load_scenarios(self.reference) if item.name == self.name)
        rung = None if self.rung is None else Rung.parse(self.rung)
        faults = None if self.faults is None else [name for name in self.faults.split(",") if name]
        return scenario_target(
            item, self.storage, fix=self.fix, shapes=self.shapes, faults=faults, rung=rung, clock=self.clock
        )

    def replay(self) -> str:
        """Return the command line that replays a token of this unit."""
        several = self.reference.endswith(".py") and len(load_scenarios(self.reference)) > 1
        return f"harness replay {self.reference}{f'::{self.name}' if several else ''}"


class Done(NamedTuple):
    """What a unit came to."""

    result: dict[str, Any]
    report: str
    status: int


def run_unit(unit: Unit, *, quiet: bool = True) -> Done:
    """Prove one unit."""
    target = unit.target()
    with _progress(target, quiet=quiet) as tick:
        proof = run_proof(
            target, mode=unit.mode, bound=unit.bound, budget=unit.budget, seconds=unit.seconds, progress=tick
        )
    title = f"{unit.name} on {unit.storage}{f' with {unit.fix}' if unit.fix else ''}"
    return Done(
        proof_object(proof, setup=target.setup), proof_report(proof, title=title, replay=unit.replay()), _status(proof)
    )


def _run_all(units: list[Unit], *, jobs: int) -> Iterator[Done]:
    """Yield what each unit came to, in order; stop after one that was interrupted."""
    if jobs == 1:
        for unit in units:
            done = run_unit(unit, quiet=False)
            yield done
            if done.status == INTERRUPTED:
                return
        return
    with ProcessPoolExecutor(max_workers=jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run_unit, units)


def _worst(one: int, other: int) -> int:
    """Return the status that matters more: interrupted, not deterministic, a violation, unfinished, proved."""
    order = (0, 3, 1, 4, INTERRUPTED)
    return max(one, other, key=order.index)


def _status(proof: Proof) -> int:
    return INTERRUPTED if proof.interrupted else STATUS[proof.verdict]


def _one_object(objects: list[dict[str, Any]]) -> dict[str, Any]:
    first = next((item for item in objects if item["verdict"] == "violation"), objects[0])
    return first if len(objects) == 1 else {**first, "results": objects}


@contextmanager
def _progress(target: Target, *, quiet: bool) -> Iterator[Callable[[int, str], None] | None]:
    """Show one line that moves while a proof runs on a terminal; nothing when piped."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(target.name) as status:

        def tick(executions: int, state: str) -> None:
            if executions % 5 == 1:
                status.update(f"{target.name} on {target.setup.get('storage', '')}: {executions} executions, {state}")

        yield tick


PLUGIN = prove
