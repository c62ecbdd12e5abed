"""Runs of any durable framework: how they are numbered, what may happen to them, what the journal says of them.

Owns the faults from outside and the events ``run.started`` and ``run.ended``; must not know any framework: an
adapter passes in how a run is consumed and how a dead one is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.model.errors import UsageError
from harness.runtime.attempt import attempt, set_attempt
from harness.runtime.faults import Countdown, Fate, Moments, crash
from harness.runtime.identity import descends_from, path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.ops import Op
from harness.runtime.waits import live_tasks

# What a search may do to a run and to what follows it; each word switches some choices on.
FAULTS = ("cancel", "crash", "storage", "stream", "resume")
_AT_MOMENTS = {"cancel": ("cancelled", "cancelled twice"), "crash": ("crashed",)}
_AT_EVENTS = {"stream": ("closed", "dropped")}
_GAPS = {"1 moment later": 1, "2 moments later": 2, "4 moments later": 4, "8 moments later": 8}
_PLACES = ("latest", "second latest", "third latest", "first")
_INSTANCES = ("fresh instance", "same instance", "two instances")


@dataclass(slots=True, eq=False)
class Run:
    """One run of a program of the framework, and how it ended.

    number: 0 for the first run of the execution. checkpoint: the id that it resumed from, or None.
    resumes: the run that it continues, or None. twin: whether another instance resumes the same at once.
    ending: ``returned``, ``failed``, ``cancelled``, ``crashed``, ``closed`` or ``dropped``. outputs: what it returned;
    empty when it did not. error: what it raised, or None. requests: what it asked a human. events: what its
    consumer saw, when it was streamed. notes: of the adapter.
    """

    number: int
    name: str
    program: Any
    message: Any
    checkpoint: str | None = None
    resumes: Run | None = None
    instance: Any = None
    from_latest: bool = True
    twin: bool = False
    ending: str = ""
    outputs: list[Any] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class AnyRun(Protocol):
    """What this module needs to know of a run of any adapter."""

    number: int
    ending: str

    @property
    def name(self) -> str:
        """The name of the program."""


@dataclass(frozen=True, slots=True)
class Leave:
    """When a consumer leaves the stream of its run, and how: ``closed`` or ``dropped`` after so many events."""

    how: str
    after: int


@dataclass(frozen=True, slots=True)
class Resume:
    """What the search chose for a resume. place: of the checkpoint, ``latest`` by default."""

    place: str
    instance: str

    def pick(self, newest_first: list[str]) -> str | None:
        """Return the checkpoint at the chosen place, or None when there is none."""
        if not newest_first:
            return None
        position = _PLACES.index(self.place) if self.place != "first" else len(newest_first) - 1
        return newest_first[min(position, len(newest_first) - 1)]


Consume = Callable[[Run, Leave | None], Awaitable[None]]


class Runs:
    """The runs of one execution.

    consume: runs a run to an ending of the program's own, or until its consumer leaves; it sets ``outputs``, and
    ``ending`` when the consumer left. forget: called when the process "died": undoes what only a process holds.
    """

    def __init__(
        self, *, consume: Consume, faults: Collection[str] = (), forget: Callable[[ControlledLoop], None] | None = None
    ) -> None:
        """faults: of FAULTS; the search may then let them happen."""
        if wrong := sorted(set(faults) - set(FAULTS)):
            raise UsageError(f"unknown fault {wrong[0]!r} (known: {', '.join(FAULTS)})")
        self.all: list[Run] = []
        self._consume = consume
        self._forget = forget
        self._faults = tuple(fault for fault in FAULTS if fault in faults)

    @property
    def streams(self) -> bool:
        """Whether the search may let a consumer leave its stream."""
        return "stream" in self._faults

    async def go(self, run: Run) -> Run:
        """Run ``run``; however it ends is part of it."""
        if run not in self.all:
            self.all.append(run)
        loop = asyncio.get_running_loop()
        set_attempt(run.number)
        note(
            "run.started",
            run,
            checkpoint=run.checkpoint,
            resumes=None if run.resumes is None else run.resumes.number,
            latest=run.from_latest,
            twin=run.twin,
            message=repr(run.message),
        )
        if not isinstance(loop, ControlledLoop):
            await self._run(run)
            return run
        kinds = [kind for fault in self._faults for kind in _AT_MOMENTS.get(fault, ())]
        if kinds:
            await self._go_with_fate(loop, run, kinds)
        else:
            first = len(loop.births)
            await self._run(run)
            _note_end(loop, run, root=getattr(asyncio.current_task(), "number", -1), first=first)
        return run

    async def go_together(self, runs: list[Run]) -> None:
        """Run several at once."""
        self.all.extend(runs)
        await asyncio.gather(*(self.go(run) for run in runs))

    async def before_resume(self, run: Run) -> Resume:
        """Let the search choose how ``run`` is resumed, and wait until then."""
        if self._chosen("resume", ("at once", "when quiet"), run) == "when quiet":
            await quiet()
        return Resume(self._chosen("checkpoint", _PLACES, run), self._chosen("instance", _INSTANCES, run))

    def _chosen(self, subject: str, options: tuple[str, ...], run: Run) -> str:
        loop = asyncio.get_running_loop()
        if "resume" not in self._faults or not isinstance(loop, ControlledLoop):
            return options[0]
        return options[loop.choose("fault", options, subject=f"{subject} of run {run.number}", interesting=True)]

    async def _go_with_fate(self, loop: ControlledLoop, run: Run, kinds: list[str]) -> None:
        """Run in a task of its own, to which something may happen at a moment of the search's choice."""
        fate = Fate(loop, f"run {run.number}", kinds=kinds, memory=loop.memory)
        over: asyncio.Future[None] = loop.create_future()
        coro: Any = self._run(run)
        coro.__name__ = "run"
        task = loop.create_task(coro)
        task.add_done_callback(lambda _: finish(over))
        fate.begin(strike(loop, run, fate, task=task, over=over, forget=self._forget))
        first = task.number + 1
        try:
            await over
        finally:
            fate.end()
        if run.ending != "crashed":
            if task.cancelled():
                run.ending = "cancelled"
            elif task.exception() is not None:
                raise task.exception()  # of the harness itself: the run's own errors are data
            _note_end(loop, run, root=task.number, first=first)

    async def _run(self, run: Run) -> None:
        """Run to an ending of the program's own, or until the consumer leaves the stream."""
        loop = asyncio.get_running_loop()
        leave: Leave | None = None
        name = f"stream of run {run.number}"
        kinds = [kind for fault in self._faults for kind in _AT_EVENTS.get(fault, ())]
        if kinds and isinstance(loop, ControlledLoop):
            options = Moments(kinds, loop.memory.get(name, 40))
            chosen = options.decode(loop.choose("fault", options, subject=name, interesting=True))
            leave = None if chosen is None else Leave(*chosen)
        try:
            await self._consume(run, leave)
        except Exception as error:
            run.error = error
            run.ending = "failed"
        else:
            run.ending = run.ending or "returned"
        if kinds and leave is None and isinstance(loop, ControlledLoop):
            loop.memory[name] = max(loop.memory.get(name, 0), len(run.events))


def strike(
    loop: ControlledLoop,
    run: AnyRun,
    fate: Fate,
    *,
    task: asyncio.Task[Any],
    over: asyncio.Future[None],
    forget: Callable[[ControlledLoop], None] | None = None,
) -> Callable[[], None]:
    """Return what happens to ``run`` at the chosen moment. over: ends its wait. forget: see ``Runs``."""
    if fate.kind == "crashed":

        def die() -> None:
            if over.done():
                return  # it had ended, and its caller will know in this iteration
            run.ending = "crashed"
            note("run.ended", run, how="crashed", error=None, left=[])
            if forget is not None:
                forget(loop)
            crash(loop, over)

        return die
    gap = 0
    if fate.kind == "cancelled twice":
        names = tuple(_GAPS)
        gap = _GAPS[names[loop.choose("fault", names, subject=f"second cancel of run {run.number}")]]

    def cancel() -> None:
        # As a callback, so that it arrives behind what is ready, where stock asyncio puts what comes from outside.
        loop.call_soon(task.cancel)
        note("run.cancelled", run)
        if gap:
            loop.countdowns.append(Countdown(gap, again))

    def again() -> None:
        loop.call_soon(task.cancel)

    return cancel


async def quiet() -> None:
    """Wait until everything else has nothing left to do."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        future: asyncio.Future[None] = loop.create_future()
        op = Op(loop, "quiet", kind="point", deliver=lambda _: finish(future), target=future)
        op.rank = 9
        loop.parked.append(op)  # no choice: let in early, it would come before all is quiet
        await future
        loop.note("quiet", "", run=attempt())
    else:
        await asyncio.sleep(0.1)


def note(kind: str, run: AnyRun, **data: Any) -> None:
    """Append a fact about ``run`` to the journal."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        loop.note(kind, run.name, run=run.number, **data)


def finish(over: asyncio.Future[None]) -> None:
    """Let the one who awaits ``over`` go on."""
    if not over.done():
        over.set_result(None)


def _note_end(loop: ControlledLoop, run: Run, *, root: int, first: int) -> None:
    """Note how a run ended, and which of its tasks are still alive."""
    left = [
        path_of(loop, task)
        for task in live_tasks(loop)
        if getattr(task, "number", -1) >= first and descends_from(loop, task, root)
    ]
    error = None if run.error is None else repr(run.error)
    values = [repr(output) for output in run.outputs]
    note("run.ended", run, how=run.ending, error=error, outputs=repr(run.outputs), values=values, left=left)
