"""Compare the controlled loop with stock asyncio, in one process, as ratios.

Run: python benchmarks/speed.py [--json]. Absolute figures drift with the machine; the ratios hold.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from harness.adapters.loading import find_scenario
from harness.adapters.targets import load_adapter, scenario_target
from harness.runtime.execution import execute, open_session
from harness.runtime.loop import LoopSettings
from harness.schedulers.ranks import Ranks
from harness.schedulers.uniform import Uniform

ROOT = Path(__file__).parents[1]
CLOCK = (time.perf_counter,)  # freezegun leaves it alone in a tuple
TASKS_BY_AWAITS = [(2, 3), (5, 4), (10, 10)]


def best_of(rounds: int, *works: tuple[Callable[[], object], int]) -> list[float]:
    """Return the least seconds per call of each work, measured in turns so that drift hits all alike."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, (work, calls) in enumerate(works):
            began = CLOCK[0]()
            for _ in range(calls):
                work()
            best[index] = min(best[index], (CLOCK[0]() - began) / calls)
    return best


def grid(tasks: int, awaits: int) -> Callable[[], object]:
    """Return a program of ``tasks`` tasks that yield ``awaits`` times each."""

    async def worker() -> None:
        for _ in range(awaits):
            await asyncio.sleep(0)

    async def program() -> None:
        await asyncio.gather(*(worker() for _ in range(tasks)))

    return program


async def many_turns() -> None:
    """Take 20,000 turns."""
    for _ in range(20_000):
        await asyncio.sleep(0)


def small_programs() -> list[dict[str, object]]:
    """Measure whole schedules of small programs, and single turns of a long one."""
    rows: list[dict[str, object]] = []
    source = random.Random(0)
    by_index = LoopSettings(discipline="indices", turn_limit=100_000)
    with open_session() as session:
        for tasks, awaits in TASKS_BY_AWAITS:
            program = grid(tasks, awaits)
            stock, plain, drawn = best_of(
                7,
                (lambda program=program: asyncio.run(program()), 100),
                (lambda program=program: execute(program, session=session), 300),
                (lambda program=program: execute(program, Uniform(source), settings=by_index, session=session), 300),
            )
            rows.append(row(f"{tasks} tasks x {awaits} awaits, default order", stock, plain))
            rows.append(row(f"{tasks} tasks x {awaits} awaits, uniform scheduler", stock, drawn))
        stock, ours = best_of(5, (lambda: asyncio.run(many_turns()), 1), (lambda: execute(many_turns), 1))
        rows.append({**row("one turn of 20,000", stock / 20_000, ours / 20_000), "per_s": None})
    return rows


def issue_9615() -> list[dict[str, object]]:
    """Measure the workflow of #9615: run, failure, resume, on the in-memory storage."""
    scenario = find_scenario("issue_9615", folder=ROOT / "scenarios")
    adapter = load_adapter(scenario.adapter)
    folder = Path(tempfile.mkdtemp())

    async def once() -> None:
        await scenario.program(adapter.durable(adapter.make_storage("memory", folder), shapes=False))

    def stock_run() -> None:
        asyncio.run(once())

    target = scenario_target(scenario, "memory", shapes=False)
    source = random.Random(0)
    stock_run()  # the first failure in a process builds its error details for 30 to 100 ms
    best = [float("inf")] * 3
    for _ in range(5):
        best[0] = min(best[0], best_of(1, (stock_run, 30))[0])
        with target.open() as runner:
            works = [(lambda: runner.run(None), 30), (lambda: runner.run(Ranks(source)), 30)]
            plain, drawn = best_of(1, *works)
        best[1], best[2] = min(best[1], plain), min(best[2], drawn)
    shutil.rmtree(folder)
    return [
        row("#9615 on memory, default order", best[0], best[1]),
        row("#9615 on memory, random ranks", best[0], best[2]),
    ]


def row(name: str, stock_s: float, ours_s: float) -> dict[str, object]:
    """Return one line of the table; the ratio is ours over stock, below 1 is faster."""
    return {
        "program": name,
        "stock_us": round(stock_s * 1e6, 2),
        "ours_us": round(ours_s * 1e6, 2),
        "ratio": round(ours_s / stock_s, 2),
        "per_s": round(1 / ours_s),
    }


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    logging.disable()
    rows = small_programs() + issue_9615()
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'program':44} {'stock us':>10} {'ours us':>10} {'ours/stock':>10} {'schedules/s':>12}")
    for item in rows:
        per_s = "" if item["per_s"] is None else f"{item['per_s']:,}"
        print(f"{item['program']:44} {item['stock_us']:10,} {item['ours_us']:10,} {item['ratio']:10} {per_s:>12}")


if __name__ == "__main__":
    main()
