"""Memory after 1,000, 2,000, ... executions, and what is left when they are over.

Owns the table; must not know how executions clean up.

    python benchmarks/leaks.py                    # 10,000 executions of each program
    python benchmarks/leaks.py --executions 3000 --program plain

Programs: ``plain`` returns, ``leftovers`` fails or deadlocks with tasks left that ignore their cancellation and a
generator suspended in the middle, ``issue-9615`` is a scenario of agent-framework under drawn schedules.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import ControlledLoop, LoopSettings, Rung
from harness.runtime.execution import Session, execute, open_session
from harness.schedulers import ranks

ROOT = Path(__file__).resolve().parent.parent
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Once = Callable[[int], None]


def resident_mb() -> float:
    """Return the resident memory of this process in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


async def plain() -> None:
    """Two tasks with three awaits each."""

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    await asyncio.gather(work(), work())


async def leftovers() -> None:
    """Deadlock with a stubborn task, one that cleans up slowly, one that never began, and an open generator."""
    loop = asyncio.get_running_loop()

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    async def tidy() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            await loop.create_future()

    async def numbers() -> object:
        try:
            yield 1
        finally:
            await asyncio.sleep(1)

    generator = numbers()
    await anext(generator)
    tasks = [asyncio.create_task(work()) for work in (tidy, stubborn)]
    await asyncio.sleep(0)
    late = asyncio.create_task(asyncio.wait_for(plain(), 1))
    late.cancel()
    raise ValueError(f"{len(tasks)} tasks are left")


@contextlib.contextmanager
def executor_of(program: Callable[[], object]) -> Iterator[tuple[Once, Session]]:
    """Yield what executes ``program`` once, under random ranks."""
    settings = LoopSettings(turn_limit=10_000)
    with open_session() as session:
        yield lambda number: _execute(program, number, settings, session), session


def _execute(program: Callable[[], object], number: int, settings: LoopSettings, session: Session) -> None:
    execute(program, ranks.PLUGIN.make(random.Random(number)), settings=settings, session=session)  # type: ignore[arg-type]


@contextlib.contextmanager
def executor_of_issue_9615() -> Iterator[tuple[Once, Session]]:
    """Yield what executes the scenario with the yielding storage once, in the rung that shows the violation."""
    sys.path.insert(0, str(ROOT / "scenarios"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # agent-framework says once that functional workflows are experimental
        import issue_9615_yield

    from harness.adapters.targets import scenario_target

    target = scenario_target(issue_9615_yield.issue_9615_yield, "yielding", rung=Rung.RELAXED)
    with target.open() as runner:
        yield lambda number: _run(runner, number), runner.session


def _run(runner: object, number: int) -> None:
    runner.run(ranks.PLUGIN.make(random.Random(number)))  # type: ignore[attr-defined]


PROGRAMS: dict[str, Callable[[], contextlib.AbstractContextManager[tuple[Once, Session]]]] = {
    "plain": lambda: executor_of(plain),
    "leftovers": lambda: executor_of(leftovers),
    "issue-9615": executor_of_issue_9615,
}


def census() -> dict[str, int]:
    """Count what must not be left."""
    gc.collect()
    alive = gc.get_objects()
    return {
        "tasks": sum(isinstance(one, asyncio.Task) for one in alive),
        "futures": sum(isinstance(one, asyncio.Future) for one in alive),
        "loops": sum(isinstance(one, ControlledLoop) for one in alive),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(threading.enumerate()),
    }


def measure(name: str, executions: int) -> None:
    """Execute one program so many times and print a line."""
    sizes = []
    step = max(executions // 10, 1)
    before = census()
    began = time.perf_counter()
    with PROGRAMS[name]() as (once, session):
        for number in range(executions):
            once(number)
            if number % step == step - 1:
                sizes.append(resident_mb())
    seconds = time.perf_counter() - began
    left = {kind: count - before[kind] for kind, count in census().items() if count != before[kind]}
    line = " ".join(f"{size:6.1f}" for size in sizes)
    print(
        f"{name:11} {line}  {seconds / executions * 1e6:8.0f}  {session.noise.count:7}  {left or 'nothing'}", flush=True
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=10_000, metavar="N")
    parser.add_argument("--program", choices=list(PROGRAMS), action="append")
    options = parser.parse_args()
    step = max(options.executions // 10, 1)
    heads = " ".join(f"{step * number:6}" for number in range(1, 11))
    print(f"{'MB after':11} {heads}  {'us each':>8}  {'kept':>7}  left")
    for name in options.program or PROGRAMS:
        measure(name, options.executions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
