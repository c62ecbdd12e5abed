"""Runs of any durable framework: how they are numbered, begun and resumed, and what the journal says of them.

Owns the events ``run.started`` and ``run.ended``, and what the search chooses of a resume; must not know any framework:
an adapter passes in how a run is consumed and how a dead one is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.adapters import owners
from harness.adapters.endings import Forget, Leave, at_events, at_moments, finish, go_with_fate, note, to_its_end
from harness.model.errors import UsageError
from harness.runtime.attempt import attempt, set_attempt
from harness.runtime.loop import ControlledLoop
from harness.runtime.ops import Op

# What a search may do to a run and to what follows it; each word switches some choices on.
FAULTS = ("cancel", "crash", "timeout", "storage", "stream", "close", "drop", "resume")
_PLACES = ("latest", "second latest", "third latest", "first")
_INSTANCES = ("fresh instance", "same instance", "two instances")
GIVEN = "given"  # the place of a checkpoint that the program names


@dataclass(slots=True, eq=False)
class Run:
    """One run of a program of the framework, and how it ended.

    number: 0 for the first run of the execution. name: of the program, in the storage. program: what makes instances.
    checkpoint: the id that it resumed from, or None. resumes: the run that it continues, or None.
    twin: whether another instance resumes the same at once.
    ending: ``returned``, ``failed``, ``cancelled``, ``timed out``, ``crashed``, ``closed`` or ``dropped``.
    outputs: what it returned; empty when it did not. error: what it raised, or None. requests: ids of what it asked a
    human. events: what its consumer saw, when it was streamed. notes: of the adapter.
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


@dataclass(frozen=True, slots=True)
class Resume:
    """What the search chose for a resume. place: of the checkpoint, ``latest`` by default."""

    place: str
    instance: str

    def instances(self, run: Run, make: Callable[[], Any], *, given: Any = None) -> list[Any]:
        """Return the instances that resume ``run``; a fresh one is ``given`` or what ``make`` returns."""
        first = run.instance if self.instance == "same instance" else given or make()
        return [first, make()] if self.instance == "two instances" else [first]

    def pick(self, newest_first: Sequence[str]) -> str | None:
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
        self,
        *,
        consume: Consume,
        faults: Collection[str] = (),
        known: Sequence[str] = FAULTS,
        can_close: bool = True,
        forget: Forget | None = None,
    ) -> None:
        """faults: of ``known``; the search may then let them happen. can_close: whether a stream can be closed."""
        self.all: list[Run] = []
        self.faults = checked_faults(faults, known)
        self.tasks: list[asyncio.Task[None]] = []  # of the runs that go on and have a task of their own
        self._consume = consume
        self._forget = forget
        self._instances: list[Any] = []
        self._leaving = [kind for kind in at_events(self.faults) if kind != "closed" or can_close]

    @property
    def streams(self) -> bool:
        """Whether the search may let a consumer leave its stream."""
        return bool(self._leaving)

    async def go(self, run: Run, **more: Any) -> Run:
        """Run ``run``; however it ends is part of it. more: what the journal is to say of its beginning."""
        if run not in self.all:
            self.all.append(run)
        loop = asyncio.get_running_loop()
        note_start(run, instance=self._ordinal(run.instance), **more)
        kinds = at_moments(self.faults)
        body = to_its_end(run, lambda leave: self._consume(run, leave), kinds=self._leaving)
        if not isinstance(loop, ControlledLoop):
            await body
        elif kinds or "hang" in self.faults:
            await self._go_apart(loop, run, body, kinds=kinds)
        else:
            root = number_of(asyncio.current_task())
            owned = owners.begin(loop, run.number, root=root, own=False)
            await body
            note_end(run, left=owners.left_of(loop, owned))
        return run

    async def _go_apart(
        self, loop: ControlledLoop, run: Run, body: Coroutine[Any, Any, None], *, kinds: list[str]
    ) -> None:
        """Run in a task of its own, which can be cancelled and whose tasks are the run's."""
        owned: list[owners.Ownership] = []
        mine: list[asyncio.Task[None]] = []

        def began(task: asyncio.Task[None]) -> None:
            owned.append(owners.begin(loop, run.number, root=number_of(task), own=True))
            mine.append(task)
            self.tasks.append(task)

        try:
            await go_with_fate(loop, run, body, kinds=kinds, forget=self._forget, began=began)
        finally:
            self.tasks = [task for task in self.tasks if task not in mine]
        if run.ending != "crashed":
            note_end(run, left=owners.left_of(loop, owned[0]))

    def _ordinal(self, instance: Any) -> int | None:
        """Return the number of ``instance`` among those that ran; None where a framework has none."""
        if instance is None:
            return None
        if not any(instance is known for known in self._instances):
            self._instances.append(instance)
        return next(index for index, known in enumerate(self._instances) if instance is known)

    async def go_all(self, runs: list[Run], **more: Any) -> Run:
        """Run one, or several at once; return the first of them."""
        if len(runs) == 1:
            return await self.go(runs[0], **more)
        self.all.extend(runs)
        await asyncio.gather(*(self.go(run, **more) for run in runs))
        return runs[0]

    async def before_resume(self, run: Run, *, given: bool = False) -> Resume:
        """Let the search choose how ``run`` is resumed, and wait until then.

        given: the program names the checkpoint, so that there is none to choose.
        """
        if self._chosen("resume", ("at once", "when quiet"), run) == "when quiet":
            await quiet()
        place = GIVEN if given else self._chosen("checkpoint", _PLACES, run)
        return Resume(place, self._chosen("instance", _INSTANCES, run))

    def _chosen(self, subject: str, options: tuple[str, ...], run: Run) -> str:
        loop = asyncio.get_running_loop()
        if "resume" not in self.faults or not isinstance(loop, ControlledLoop):
            return options[0]
        return options[loop.choose("fault", options, subject=f"{subject} of run {run.number}", interesting=True)]


def checked_faults(faults: Collection[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return ``faults`` in the order of ``known``; raises UsageError for one that is not there."""
    if wrong := sorted(set(faults) - set(known)):
        raise UsageError(f"unknown fault {wrong[0]!r} (known: {', '.join(known)})")
    return tuple(fault for fault in known if fault in faults)


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


async def at_the_end(notes: Collection[str]) -> ControlledLoop | None:
    """Wait until all of a program that is over is quiet, and return its loop; None when there is nothing to note.

    What follows runs in default order, so that nothing of it is searched.
    """
    loop = asyncio.get_running_loop()
    if not notes or not isinstance(loop, ControlledLoop):
        return None
    loop.scheduler = None
    await quiet()
    return loop


def note_start(run: Run, **more: Any) -> None:
    """Note that ``run`` begins, and let what follows belong to it."""
    set_attempt(run.number)
    note(
        "run.started",
        run,
        checkpoint=run.checkpoint,
        resumes=None if run.resumes is None else run.resumes.number,
        latest=run.from_latest,
        twin=run.twin,
        message=repr(run.message),
        **more,
    )


def note_end(run: Run, *, left: list[str]) -> None:
    """Note how a run ended. left: the paths of those of its tasks that are still alive."""
    error = None if run.error is None else repr(run.error)
    values = [repr(output) for output in run.outputs]
    note("run.ended", run, how=run.ending, error=error, outputs=repr(run.outputs), values=values, left=left)


def number_of(task: asyncio.Task[Any] | None) -> int:
    """Return the number of a task of a controlled loop, or -1."""
    return getattr(task, "number", -1)
