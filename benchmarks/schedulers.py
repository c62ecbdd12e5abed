"""Count the executions until the first failure: program x scheduler, mean over 20 seeds, at g = 10.

Run: python benchmarks/schedulers.py [--json] [--cap N] [--seeds N] [--seconds S] [--program NAME] [--scheduler NAME]

A search that finds nothing within the cap counts as the cap; when none of the seeds does, the mean is "never". With
--seconds a cell begins no other seed after that time, and says how many it had when they were fewer.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.programs import PROGRAMS
from harness.adapters.portfolio import make_phases
from harness.model.rung import Rung
from harness.search.portfolio import BudgetSpent, Phase, Trial
from harness.search.target import Target

SCHEDULERS = ("portfolio", "surw", "pct-3", "pct", "pos", "delay", "trio-shuffle", "uniform")
PUBLISHED = ("surw", "pct-3", "pos", "uniform")


def executions_to_failure(name: str, scheduler: str, *, seed: int, cap: int) -> int | None:
    """Return the number of the first execution that fails, shrinking left out; None when the cap came first."""
    target = Target(name=name, program=PROGRAMS[name][0], rung=Rung.RELAXED, turn_limit=20_000)
    phases: Sequence[Phase] = make_phases(scheduler, rung=target.rung, seed=seed)
    with target.open() as runner:
        trial = Trial(runner, budget=cap)
        try:
            for phase in phases:
                if trial.left > 0 and phase.look(trial) is not None:
                    return trial.found_after
        except BudgetSpent:
            pass
    return None


def measure(name: str, scheduler: str, *, seeds: int, cap: int, seconds: float = float("inf")) -> dict[str, object]:
    """Return one cell of the table."""
    began = time.perf_counter()
    found: list[int | None] = []
    while len(found) < seeds and (not found or time.perf_counter() - began < seconds):
        found.append(executions_to_failure(name, scheduler, seed=len(found), cap=cap))
    hits = [count for count in found if count is not None]
    return {
        "program": name,
        "scheduler": scheduler,
        "mean": round(statistics.mean(cap if count is None else count for count in found), 1) if hits else None,
        "seeds": len(found),
        "of": seeds,
        "missed": len(found) - len(hits),
        "cap": cap,
        "seconds": round(time.perf_counter() - began, 1),
    }


def cell_text(cell: dict[str, object]) -> str:
    """Return a mean, with ">" when some seeds found nothing within the cap."""
    seeds = f" ({cell['seeds']})" if cell["seeds"] != cell["of"] else ""
    if cell["mean"] is None:
        return f"never{seeds}"
    return f"{'>' if cell['missed'] else ''}{cell['mean']:,}{seeds}"


def published_text(value: int | None) -> str:
    """Return a published mean."""
    return "never" if value is None else f"{value:,}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cap", type=int, default=2_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other seed of a cell after that")
    parser.add_argument("--program", action="append", choices=list(PROGRAMS))
    parser.add_argument("--scheduler", action="append")
    options = parser.parse_args()
    logging.disable()
    schedulers = options.scheduler or SCHEDULERS
    if not options.json:
        head = "".join(f"{name:>13}" for name in schedulers)
        print(f"{'program':18}{head}   published: {', '.join(PUBLISHED)}", flush=True)
    cells = []
    for name in options.program or PROGRAMS:
        limits = {"seeds": options.seeds, "cap": options.cap, "seconds": options.seconds}
        row = [measure(name, scheduler, **limits) for scheduler in schedulers]
        cells += row
        if not options.json:
            figures = ", ".join(map(published_text, PROGRAMS[name][1]))
            print(f"{name:18}{''.join(f'{cell_text(cell):>13}' for cell in row)}   {figures}", flush=True)
    if options.json:
        print(json.dumps(cells, indent=2))


if __name__ == "__main__":
    main()
