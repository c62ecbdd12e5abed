"""The big runs of ``tests/soundness``: programs, schedules, mismatches.

    python benchmarks/soundness.py [--programs 10000] [--exact 1000] [--schedules 10] [--real 0] [--seed 0]

Prints one line per comparison; exit status 1 when anything differs. ``--real`` runs that many programs without
ops from outside on the stock loop with the machine's own clock and selector; they sleep, eight at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import platform
import selectors
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from soundness.compare import (  # noqa: E402
    SCHEDULERS,
    OneWorker,
    default_difference,
    difference,
    exact_difference,
    run_controlled,
    sample,
)
from soundness.programs import Program, Seen, Spec, write  # noqa: E402
from soundness.stock import Deadlock, run_on_stock  # noqa: E402

from harness import Rung  # noqa: E402
from harness.model.schedule import parse_token  # noqa: E402
from harness.runtime.execution import Session, open_session  # noqa: E402
from harness.search.recording import Recorded, Replay  # noqa: E402

SHOWN = 5
# Four durations: the longest is a quarter of a second.
REAL_DURATIONS = 4
ATTEMPTS = 3  # on a busy machine a deadline may be missed by more than the shortest duration


def check_default(programs: range, session: Session) -> Iterable[tuple[object, str]]:
    """Default order against stock asyncio where nothing is slow."""
    for seed in programs:
        yield seed, default_difference(write(seed), session=session)


def check_exact(programs: range, schedules: int, session: Session) -> Iterable[tuple[object, str]]:
    """Each schedule against stock asyncio with the same arrivals."""
    names = sorted(SCHEDULERS)
    for seed in programs:
        spec = write(seed)
        for number in range(schedules):
            name = names[number % len(names)]
            found, label = exact_difference(spec, scheduler=name, seed=number, session=session)
            yield (seed, name, number), found or ("" if label is Rung.EXACT else f"labelled {label.label}")


def check_labels(programs: range, rung: Rung, session: Session) -> Iterable[tuple[object, str]]:
    """Schedules that were free to go further and are labelled exact all the same."""
    for seed in programs:
        for number, name in enumerate(sorted(SCHEDULERS)):
            found, label = exact_difference(
                write(seed), scheduler=name, seed=number, session=session, rung=rung, always=False
            )
            if label is Rung.EXACT:
                yield (seed, name, number), found


def check_replay(programs: range, session: Session) -> Iterable[tuple[object, str]]:
    """Twice under one seed, and once from the token."""
    for seed in programs:
        name = sorted(SCHEDULERS)[seed % len(SCHEDULERS)]
        spec = write(seed)
        runs = []
        scheduler: Recorded | Replay = Recorded(sample(seed, name))
        for attempt in range(3):
            seen, execution = run_controlled(
                spec,
                scheduler,
                session=session,
                rung=Rung.LATENCY,
                discipline=SCHEDULERS[name].discipline,
                tracing=True,
            )
            runs.append((seen, execution.trace))
            again = Recorded(sample(seed, name))
            scheduler = again if attempt == 0 else Replay(parse_token(execution.schedule.token()))
        yield (seed, name), "" if runs[0] == runs[1] == runs[2] else "the executions differ"


class RealSelector(selectors.DefaultSelector):
    """The system's selector; it says so when it would sleep for ever."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait as asked."""
        if timeout is None:
            raise Deadlock
        return super().select(timeout)


class HashedTask(asyncio.Task):  # type: ignore[type-arg]
    """A task in whose sets the order of creation holds; stock asyncio leaves it to addresses."""

    def __init__(self, number: int, coro: object, **kwargs: object) -> None:
        self.number = number
        super().__init__(coro, **kwargs)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return self.number


def run_for_real(spec: Spec) -> Seen:
    """Run a program on ``asyncio.SelectorEventLoop`` and the machine's clock."""
    program = Program(spec, OneWorker)
    loop = asyncio.SelectorEventLoop(RealSelector())
    numbers = itertools.count()
    loop.set_task_factory(lambda loop, coro, **kwargs: HashedTask(next(numbers), coro, loop=loop, **kwargs))
    ending = "returned"
    try:
        loop.run_until_complete(program())
    except Deadlock:
        ending = "deadlock"
    except Exception as error:
        ending = f"raised {type(error).__name__}"
    seen = Seen(ending, tuple(program.events))
    program.over = True
    for task in (left := asyncio.all_tasks(loop)):
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=0.05))
    loop.close()
    return seen


def check_real(programs: range, session: Session) -> Iterable[tuple[object, str]]:
    """Default order, and the driver, against the machine's own clock."""
    specs = [write(seed, outside=False, durations=REAL_DURATIONS) for seed in programs]
    with ThreadPoolExecutor(8) as pool:
        real = list(pool.map(run_for_real, specs))
    for spec, seen in zip(specs, real, strict=True):
        ours, _ = run_controlled(spec, session=session)
        found = difference(ours, seen)
        for _ in range(ATTEMPTS):
            found = found and difference(ours, run_for_real(spec))
        yield spec.seed, found or difference(run_on_stock(Program(spec, OneWorker)), seen if not found else ours)


def main() -> int:
    """Run the checks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("programs", 10_000), ("exact", 1000), ("schedules", 10), ("real", 0), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    first = options.seed
    many, some = range(first, first + options.programs), range(first, first + options.exact)
    real = range(first, first + options.real)
    with open_session() as session:
        checks = {
            "default order = stock order": check_default(many, session),
            "exact schedules on stock": check_exact(some, options.schedules, session),
            "latency schedules labelled exact": check_labels(some, Rung.LATENCY, session),
            "relaxed schedules labelled exact": check_labels(some, Rung.RELAXED, session),
            "run twice and replayed": check_replay(many, session),
            "default order = real clock": check_real(real, session),
        }
        print(f"Python {platform.python_version()}, programs from {first}")
        print(f"{'check':36} {'runs':>7} {'mismatches':>11} {'seconds':>8}")
        wrong = 0
        for title, check in checks.items():
            began, runs, bad = time.perf_counter(), 0, []
            for what, found in check:
                runs += 1
                if found:
                    bad.append(f"  {what}: {found}")
            wrong += len(bad)
            if runs:
                print(f"{title:36} {runs:7} {len(bad):11} {time.perf_counter() - began:8.1f}", flush=True)
            print("\n".join(bad[:SHOWN]), end="\n" if bad else "", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
