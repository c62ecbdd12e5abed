"""Runs of any durable framework: how they are numbered, begun and resumed, and what the journal says of them.

Owns the events ``run.started`` and ``run.ended``, and what the search chooses of a resume; must not know any framework:
an adapter passes in how a run is consumed and how a dead one is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.adapters.endings import Forget, Leave, at_events, at_moments, finish, go_with_fate, note, to_its_end
from harness.model.errors import UsageError
from harness.runtime.attempt import attempt, set_attempt
from harness.runtime.identity import descends_from, path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.ops import Op
from harness.runtime.waits import live_tasks

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

    def __init__(self, *, consume: Consume, faults: Collection[str] = (), forget: Forget | None = None) -> None:
        """faults: of FAULTS; the search may then let them happen."""
        self.all: list[Run] = []
        self._consume = consume
        self._forget = forget
        self._faults = checked_faults(faults, FAULTS)

    @property
    def streams(self) -> bool:
        """Whether the search may let a consumer leave its stream."""
        return bool(at_events(self._faults))

    async def go(self, run: Run) -> Run:
        """Run ``run``; however it ends is part of it."""
        if run not in self.all:
            self.all.append(run)
        loop = asyncio.get_running_loop()
        note_start(run)
        kinds = at_moments(self._faults)
        body = to_its_end(run, lambda leave: self._consume(run, leave), kinds=at_events(self._faults))
        if not isinstance(loop, ControlledLoop):
            await body
        elif kinds:
            roots: list[int] = []
            await go_with_fate(
                loop, run, body, kinds=kinds, forget=self._forget, began=lambda task: roots.append(number_of(task))
            )
            if run.ending != "crashed":
                note_end(run, left=_left(loop, roots[0], first=roots[0] + 1))
        else:
            first = len(loop.births)
            await body
            note_end(run, left=_left(loop, number_of(asyncio.current_task()), first=first))
        return run

    async def go_together(self, runs: list[Run]) -> None:
        """Run several at once."""
        self.all.extend(runs)
        await asyncio.gather(*(self.go(run) for run in runs))

    async def before_resume(self, run: Run) -> Resume:
        """Let the search choose how ``run`` is resumed, and wait until then."""
        return await before_resume(run, self._faults)


def checked_faults(faults: Collection[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return ``faults`` in the order of ``known``; raises UsageError for one that is not there."""
    if wrong := sorted(set(faults) - set(known)):
        raise UsageError(f"unknown fault {wrong[0]!r} (known: {', '.join(known)})")
    return tuple(fault for fault in known if fault in faults)


async def before_resume(run: Run, faults: Collection[str], *, given: bool = False) -> Resume:
    """Let the search choose how ``run`` is resumed, and wait until then.

    given: the program names the checkpoint, so that there is none to choose.
    """
    if _chosen("resume", ("at once", "when quiet"), run, faults) == "when quiet":
        await quiet()
    place = GIVEN if given else _chosen("checkpoint", _PLACES, run, faults)
    return Resume(place, _chosen("instance", _INSTANCES, run, faults))


def _chosen(subject: str, options: tuple[str, ...], run: Run, faults: Collection[str]) -> str:
    loop = asyncio.get_running_loop()
    if "resume" not in faults or not isinstance(loop, ControlledLoop):
        return options[0]
    return options[loop.choose("fault", options, subject=f"{subject} of run {run.number}", interesting=True)]


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


def _left(loop: ControlledLoop, root: int, *, first: int) -> list[str]:
    """Return the paths of the tasks that are alive of those that ``root`` made from number ``first`` on."""
    return [
        path_of(loop, task) for task in live_tasks(loop) if number_of(task) >= first and descends_from(loop, task, root)
    ]
