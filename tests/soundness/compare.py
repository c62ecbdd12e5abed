"""A program on the controlled loop and on stock asyncio, side by side.

Owns the recording of a schedule as a script for the driver; must not know how programs are drawn.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.model.choice import Scheduler
from harness.model.outcome import Execution
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.runtime.execution import Session, execute
from harness.runtime.loop import ControlledLoop, LoopSettings
from harness.schedulers import ranks, uniform
from soundness.programs import Program, Seen, Spec
from soundness.stock import Script, run_on_stock

# A program of the generator ends within a few hundred turns.
TURN_LIMIT = 20_000
SCHEDULERS: dict[str, Any] = {"ranks": ranks.PLUGIN, "uniform": uniform.PLUGIN}


class OneWorker(ThreadPoolExecutor):
    """A pool whose threads are never started: the controlled loop runs its jobs."""

    def __init__(self) -> None:
        super().__init__(1)


def run_controlled(
    spec: Spec,
    scheduler: Scheduler | None = None,
    *,
    session: Session,
    rung: Rung = Rung.EXACT,
    discipline: Discipline = "ranks",
    tracing: bool = False,
    script: Script | None = None,
) -> tuple[Seen, Execution]:
    """Run a program on the controlled loop; fill ``script`` with what arrived."""
    program = Program(spec, OneWorker)

    def note_end(loop: ControlledLoop, _ending: object) -> tuple[Any, ...]:
        if script is not None:
            keep_deliveries(script, loop)
        program.over = True
        return tuple(program.events)

    if script is not None:
        session.on_begin.append(lambda loop: record_into(script, loop))
    try:
        execution = execute(
            program,
            scheduler,
            settings=LoopSettings(rung=rung, discipline=discipline, turn_limit=TURN_LIMIT, tracing=tracing),
            session=session,
            on_end=note_end,
        )
    finally:
        if script is not None:
            session.on_begin.pop()
    ending = execution.ending
    text = f"raised {type(ending.error).__name__}" if ending.kind == "raised" else ending.kind
    return Seen(text, execution.notes["on_end"]), execution


class RecordingLoop(ControlledLoop):
    """Keeps what the program reads from the clock.

    A subclass, because a ``time`` put on the loop itself stands for a clock of the program's own.
    """

    reads: list[float]

    def time(self) -> float:
        now_s = super().time()
        self.reads.append(now_s)
        return now_s


def record_into(script: Script, loop: ControlledLoop) -> None:
    """Begin to write down what arrives and what the program reads from the clock."""
    loop.deliveries = []
    script.set_order = loop.set_order
    loop.__class__ = RecordingLoop
    loop.reads = script.reads  # type: ignore[attr-defined]


def keep_deliveries(script: Script, loop: ControlledLoop) -> None:
    """Sort what arrived by iteration."""
    for iteration, name, now_s in loop.deliveries or ():
        if name:
            script.deliveries.setdefault(iteration, []).append(name)
        else:
            script.clock[iteration] = now_s


def sample(seed: int, scheduler: str) -> Scheduler:
    made: Scheduler = SCHEDULERS[scheduler].make(random.Random(seed))
    return made


def default_difference(spec: Spec, *, session: Session) -> str:
    """Run ``spec`` in default order and on stock asyncio where nothing is slow; return what differs, or ""."""
    ours, _ = run_controlled(spec, session=session)
    return difference(ours, run_on_stock(Program(spec, OneWorker)))


def exact_difference(
    spec: Spec, *, scheduler: str, seed: int, session: Session, rung: Rung = Rung.EXACT, always: bool = True
) -> tuple[str, Rung]:
    """Run one schedule of ``spec``, then the same arrivals on stock asyncio.

    rung: up to which the scheduler may go. always: drive stock asyncio even if the label is not ``exact``.
    Returns what differs, or "", and the label of the schedule.
    """
    script = Script()
    discipline: Discipline = SCHEDULERS[scheduler].discipline
    ours, execution = run_controlled(
        spec, sample(seed, scheduler), session=session, rung=rung, discipline=discipline, script=script
    )
    if execution.rung is not Rung.EXACT and not always:
        return "", execution.rung
    return difference(ours, run_on_stock(Program(spec, OneWorker), script)), execution.rung


def difference(ours: Seen, stock: Seen) -> str:
    """Return the first event that differs, or ""."""
    for number, (one, other) in enumerate(zip(ours.events, stock.events, strict=False)):
        if one != other:
            return f"event {number}: ours {one}, stock {other}"
    if ours != stock:
        return f"ours {ours.ending} after {len(ours.events)}, stock {stock.ending} after {len(stock.events)}"
    return ""
