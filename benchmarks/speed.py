"""Compare the controlled loop with stock asyncio and with a bare controlled loop, in one process, as ratios.

Owns the tables of schedules per second and of the cost of a turn; must not know what makes them fast.

    python benchmarks/speed.py            # two tables
    python benchmarks/speed.py --json

Absolute figures drift with the machine, the ratios hold. `bare` runs what is ready in a random order and does
nothing else (`bare_loop.py`): what is left to win. At rung `latency` the grids leave the scheduler nothing to choose
but the order of sets; at `relaxed` it chooses at every turn.
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
from typing import Any

from bare_loop import BareLoop

from harness.adapters.loading import find_scenario
from harness.adapters.targets import load_adapter, scenario_target
from harness.model.rung import Rung
from harness.runtime.execution import Session, execute, open_session
from harness.runtime.loop import LoopSettings
from harness.schedulers.ranks import Ranks
from harness.schedulers.uniform import PLUGIN, Uniform
from harness.search.portfolio import Trial
from harness.search.sampling import Sampling
from harness.search.target import Runner, Target

ROOT = Path(__file__).parents[1]
CLOCK = (time.perf_counter,)  # freezegun leaves it alone in a tuple
# Tasks, awaits of each, and the schedules per second that a uniform search should reach.
GRIDS = [(2, 3, 30_000), (5, 4, 12_000), (10, 10, 4_000)]
ROUNDS = 500
ROUND_S = 0.001  # short, so that some rounds are not interrupted on a busy machine
# A long execution has so many turns, timed in laps; the cheapest of the first few is compared with that of the last.
MANY, LAP, LAPS_COMPARED = 100_000, 200, 75
NO_LIMIT = 10 * MANY
Row = dict[str, Any]
Work = Callable[[], object]


def best_of(rounds: int, *works: Work) -> list[float]:
    """Return the least seconds per call of each work, measured in turns so that drift hits all alike."""
    for work in works:
        seconds_of(work, 3)  # warms up
    calls = [max(1, int(ROUND_S / min(seconds_of(work, 1) for _ in range(10)))) for work in works]
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            best[index] = min(best[index], seconds_of(work, calls[index]))
    return best


def seconds_of(work: Work, calls: int) -> float:
    """Return the seconds of one of so many calls."""
    began = CLOCK[0]()
    for _ in range(calls):
        work()
    return (CLOCK[0]() - began) / calls


def grid(tasks: int, awaits: int) -> Callable[[], Any]:
    """Return a program of ``tasks`` tasks that yield ``awaits`` times each."""

    async def worker() -> None:
        for _ in range(awaits):
            await asyncio.sleep(0)

    async def program() -> None:
        await asyncio.gather(*(worker() for _ in range(tasks)))

    return program


def uniform(source: random.Random, rung: Rung, session: Session, program: Callable[[], Any]) -> Work:
    """Return what executes ``program`` once under the uniform scheduler."""
    settings = LoopSettings(rung=rung, discipline="indices", turn_limit=NO_LIMIT)
    return lambda: execute(program, Uniform(source), settings=settings, session=session)


def searched(rung: Rung, runner: Runner) -> Work:
    """Return what executes a target once as a uniform search does, a source of its own for each schedule included."""
    trial = Trial(runner, budget=NO_LIMIT)
    steps = Sampling("uniform", PLUGIN, seed=0, rung=rung).steps(trial)
    return lambda: next(steps)


def small_programs() -> list[Row]:
    """Measure whole schedules of small programs."""
    rows: list[Row] = []
    source = random.Random(0)
    with open_session() as session:
        for tasks, awaits, target in GRIDS:
            program = grid(tasks, awaits)
            runner = Runner(Target("grid", program, turn_limit=NO_LIMIT), session)
            stock, bare, plain, latency, relaxed, search = best_of(
                ROUNDS,
                lambda program=program: asyncio.run(program()),  # type: ignore[misc]
                lambda program=program: BareLoop(source).run_until_complete(program()),  # type: ignore[misc]
                lambda program=program: execute(program, session=session),  # type: ignore[misc]
                uniform(source, Rung.LATENCY, session, program),
                uniform(source, Rung.RELAXED, session, program),
                searched(Rung.RELAXED, runner),
            )
            name = f"{tasks} tasks x {awaits} awaits"
            rows.append(row(f"{name}, default order", stock, plain, bare_s=bare))
            rows.append(row(f"{name}, uniform, latency", stock, latency, bare_s=bare, target=target))
            rows.append(row(f"{name}, uniform, relaxed", stock, relaxed, bare_s=bare, target=target))
            rows.append(row(f"{name}, search, relaxed", stock, search, bare_s=bare))
    return rows


def issue_9615() -> list[Row]:
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
        found = best_of(20, stock_run)
        with target.open() as runner:
            found += best_of(20, lambda: runner.run(None), lambda: runner.run(Ranks(source)))
        best = [min(pair) for pair in zip(best, found, strict=True)]
    shutil.rmtree(folder)
    return [
        row("#9615 on memory, default order", best[0], best[1]),
        row("#9615 on memory, random ranks", best[0], best[2]),
    ]


def row(name: str, stock_s: float, ours_s: float, *, bare_s: float | None = None, target: int | None = None) -> Row:
    """Return one line of the first table; a ratio is the time of ours over theirs, below 1 is faster."""
    return {
        "program": name,
        "stock_us": round(stock_s * 1e6, 1),
        "bare_us": None if bare_s is None else round(bare_s * 1e6, 1),
        "ours_us": round(ours_s * 1e6, 1),
        "over_stock": round(ours_s / stock_s, 2),
        "over_bare": None if bare_s is None else round(ours_s / bare_s, 2),
        "per_s": round(1 / ours_s),
        "target_per_s": target,
    }


class Laps:
    """The seconds that each few turns took, as the program sees them; so short that some are not interrupted."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._turns = 0
        self._since = CLOCK[0]()

    def count(self, turns: int) -> None:
        """Count some turns."""
        self._turns += turns
        if self._turns >= LAP:
            now_s = CLOCK[0]()
            self.seconds.append((now_s - self._since) / self._turns)
            self._turns, self._since = 0, now_s

    def early_and_late(self) -> tuple[float, float]:
        """Return the least seconds per turn of the first laps and of the last ones."""
        early = self.seconds[1:LAPS_COMPARED]  # the first one warms up
        return min(early), min(self.seconds[-LAPS_COMPARED:])


def yielding(tasks: int, laps: Laps) -> Callable[[], Any]:
    """Return a program of MANY turns of ``tasks`` tasks that yield."""

    async def worker() -> None:
        for _ in range(MANY // tasks):
            laps.count(1)
            await asyncio.sleep(0)

    async def program() -> None:
        await asyncio.gather(*(worker() for _ in range(tasks)))

    return program


def births(_: int, laps: Laps) -> Callable[[], Any]:
    """Return a program of MANY turns that makes tasks one after another."""

    async def child() -> None:
        laps.count(2)

    async def program() -> None:
        for _ in range(MANY // 2):
            await asyncio.create_task(child())

    return program


def long_programs() -> list[Row]:
    """Measure a turn at the beginning and at the end of a long execution."""
    latency = LoopSettings(turn_limit=NO_LIMIT)
    relaxed = LoopSettings(turn_limit=NO_LIMIT, rung=Rung.RELAXED, discipline="indices")
    traced = LoopSettings(turn_limit=NO_LIMIT, tracing=True)
    rows: list[Row] = []
    kinds: list[tuple[str, LoopSettings, int, Callable[[int, Laps], Callable[[], Any]]]] = [
        ("2 tasks, default order", latency, 2, yielding),
        ("2 tasks, uniform, relaxed", relaxed, 2, yielding),
        ("100 tasks, uniform, relaxed", relaxed, 100, yielding),
        (f"{MANY // 2:,} tasks, uniform, relaxed", relaxed, 0, births),
        ("2 tasks, with a trace", traced, 2, yielding),
        (f"{MANY // 2:,} tasks, with a trace", traced, 0, births),
    ]
    with open_session() as session:
        for name, settings, tasks, make in kinds:
            laps = Laps()
            scheduler = Uniform(random.Random(0)) if settings is relaxed else None
            execute(make(tasks, laps), scheduler, settings=settings, session=session)
            early, late = laps.early_and_late()
            rows.append(
                {
                    "turns": name,
                    "early_us": round(early * 1e6, 2),
                    "late_us": round(late * 1e6, 2),
                    "late_over_early": round(late / early, 2),
                }
            )
    return rows


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    logging.disable()
    rows, long = small_programs() + issue_9615(), long_programs()
    if "--json" in sys.argv:
        print(json.dumps({"schedules": rows, "turns": long}, indent=2))
        return
    heads = "stock us", "bare us", "ours us", "ours/stock", "ours/bare", "schedules/s", "target"
    print(f"{'program':36}" + "".join(f"{head:>12}" for head in heads))
    for item in rows:
        print(f"{item['program']:36}" + "".join(f"{shown(value):>12}" for value in list(item.values())[1:]))
    print(f"\n{f'a turn of an execution of {MANY:,}':36}{'early us':>12}{'late us':>12}{'ratio':>12}")
    for item in long:
        print(f"{item['turns']:36}" + "".join(f"{shown(value):>12}" for value in list(item.values())[1:]))


def shown(value: float | None) -> str:
    """Return a number as text; nothing for None."""
    return "" if value is None else f"{value:,}"


if __name__ == "__main__":
    main()
