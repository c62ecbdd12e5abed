"""Runs and resumes of one workflow inside one execution.

Owns ``durable``, the object that a scenario is written with; must not know schedulers or oracles.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.adapters.agent_framework import owners
from harness.adapters.agent_framework.endnotes import note_references, note_storage
from harness.adapters.agent_framework.observe import forget_loop
from harness.adapters.agent_framework.releases import can_close_streams, new_instance
from harness.adapters.agent_framework.storage import ControlledStorage
from harness.adapters.runs import finish, note, quiet, strike
from harness.model.errors import UsageError
from harness.runtime.attempt import set_attempt
from harness.runtime.faults import Fate, Moments
from harness.runtime.identity import path_of
from harness.runtime.loop import ControlledLoop
from harness.runtime.ops import Op
from harness.runtime.points import SHAPES_ON
from harness.runtime.shapes import SHAPES
from harness.runtime.waits import live_tasks

# What a search may do to a run and to what follows it; each word switches some choices on.
FAULTS = ("cancel", "crash", "storage", "stream", "close", "drop", "resume", "hang")
_AT_MOMENTS = {"cancel": ("cancelled", "cancelled twice"), "crash": ("crashed",)}
_AT_EVENTS = {"stream": ("closed", "dropped"), "close": ("closed",), "drop": ("dropped",)}


@dataclass(slots=True, eq=False)
class Run:
    """One run of a workflow, and how it ended.

    number: 0 for the first run of the execution. checkpoint: the id that it resumed from, or None.
    resumes: the run that it continues, or None. twin: another instance resumes the same at once.
    ending: ``returned``, ``failed``, ``cancelled``, ``crashed``, ``closed`` or ``dropped``. outputs: what it
    returned; empty when it did not. error: what it raised, or None. requests: ids of what it asked a human.
    events: what its consumer saw, when it was streamed.
    """

    number: int
    workflow: Any
    message: Any
    checkpoint: str | None = None
    resumes: Run | None = None
    instance: Any = None
    from_latest: bool = True
    twin: bool = False
    ending: str = ""
    outputs: list[Any] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return str(getattr(self.instance, "name", "workflow"))


class Durable:
    """Runs workflows on the storage of this execution, and resumes them as another process would."""

    def __init__(
        self, storage: Any, *, shapes: bool = True, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> None:
        """faults: of FAULTS; the search may then let them happen. notes: what the oracles need beyond the usual."""
        if wrong := sorted(set(faults) - set(FAULTS)):
            raise UsageError(f"unknown fault {wrong[0]!r} (known: {', '.join(FAULTS)})")
        loop = asyncio.get_running_loop()
        shape = "as-is"
        if shapes and isinstance(loop, ControlledLoop):
            loop.scratch[SHAPES_ON] = True
            names = tuple(SHAPES)
            shape = names[loop.choose("shape", names, subject="save", interesting=True)]
        self.storage = ControlledStorage(
            storage,
            shape=shape,
            faults="storage" in faults,
            on_hang=self._hung if "hang" in faults else None,
            notes=notes,
        )
        self.runs: list[Run] = []
        self._notes = tuple(notes)
        self._instances: list[Any] = []
        self._tasks: list[asyncio.Task[Any]] = []  # of the runs that have a task of their own
        self._faults = tuple(fault for fault in FAULTS if fault in faults)

    async def run(self, workflow: Any, message: Any, *, instance: Any = None, stream: bool = False) -> Run:
        """Run ``workflow`` from the beginning; however it ends is part of the returned Run.

        workflow: what ``@workflow`` returned, or a function that builds a workflow. instance: run this one
        instead of a new one. stream: consume the run's events one by one.
        """
        run = Run(len(self.runs), workflow, message, instance=instance or build(workflow))
        return await self._go(run, {"message": message}, stream=stream)

    async def resume(
        self,
        run: Run,
        *,
        responses: dict[str, Any] | None = None,
        checkpoint: str | None = None,
        instance: Any = None,
        stream: bool = False,
    ) -> Run:
        """Resume ``run`` from the latest checkpoint, or from the one with the id ``checkpoint``, on a fresh instance.

        Without any checkpoint, the workflow is run from the beginning, as its caller would do. responses:
        answers to what the run asked. With the fault ``resume`` the search also chooses the checkpoint, the
        instance, and whether to wait until everything of the run is quiet.
        """
        if self._chosen("resume", ("at once", "when quiet"), run) == "when quiet":
            await self.quiet()
        place = "given"
        if checkpoint is None:
            place = self._chosen("checkpoint", ("latest", "second latest", "third latest", "first"), run)
        where = self._chosen("instance", ("fresh instance", "same instance", "two instances"), run)
        if checkpoint is None:
            checkpoint = await self._checkpoint(run, place)
        instances = [run.instance if where == "same instance" else instance or build(run.workflow)]
        if where == "two instances":
            instances.append(build(run.workflow))
        resumed = [
            Run(
                len(self.runs) + index,
                run.workflow,
                run.message,
                checkpoint,
                run,
                made,
                from_latest=place == "latest",
                twin=len(instances) > 1,
            )
            for index, made in enumerate(instances)
        ]
        start: dict[str, Any] = {"message": run.message} if checkpoint is None else {"checkpoint_id": checkpoint}
        if responses is not None and checkpoint is not None:
            start["responses"] = responses
        if len(resumed) == 1:
            return await self._go(resumed[0], start, stream=stream)
        self.runs.extend(resumed)
        await asyncio.gather(*(self._go(item, start, stream=stream, known=True) for item in resumed))
        return resumed[0]

    async def quiet(self) -> None:
        """Wait until everything else has nothing left to do."""
        await quiet()

    async def finish(self) -> None:
        """Note what the oracles asked for when the program is over; in default order, so that nothing is searched."""
        loop = asyncio.get_running_loop()
        if not self._notes or not isinstance(loop, ControlledLoop):
            return
        loop.scheduler = None
        await self.quiet()
        if {"storage", "contents"} & set(self._notes):
            await note_storage(loop, self.storage, names=list(dict.fromkeys(run.name for run in self.runs)))
        if "reference" in self._notes:
            await note_references(loop, [(run.message, partial(build, run.workflow)) for run in self.runs])

    def _hung(self, loop: ControlledLoop) -> None:
        """Cancel the runs when nothing else can happen: what somebody does who waits for a save that never ends."""

        def cancel(_op: Op) -> None:
            for task in self._tasks:
                loop.call_soon(task.cancel)

        op = Op(loop, "patience", kind="point", deliver=cancel, target=loop.create_future())
        op.rank = 8
        loop.parked.append(op)  # no choice: it is no deviation that patience ends

    def _chosen(self, subject: str, options: tuple[str, ...], run: Run) -> str:
        loop = asyncio.get_running_loop()
        if "resume" not in self._faults or not isinstance(loop, ControlledLoop):
            return options[0]
        return options[loop.choose("fault", options, subject=f"{subject} of run {run.number}", interesting=True)]

    async def _checkpoint(self, run: Run, place: str) -> str | None:
        if place == "latest":
            latest = await self.storage.get_latest(workflow_name=run.name)
            return None if latest is None else str(latest.checkpoint_id)
        found = await self.storage.list_checkpoints(workflow_name=run.name)
        ids = [item.checkpoint_id for item in sorted(found, key=lambda item: item.timestamp, reverse=True)]
        if not ids:
            return None
        position = {"second latest": 1, "third latest": 2, "first": len(ids) - 1}[place]
        return str(ids[min(position, len(ids) - 1)])

    async def _go(self, run: Run, start: dict[str, Any], *, stream: bool, known: bool = False) -> Run:
        if not known:
            self.runs.append(run)
        loop = asyncio.get_running_loop()
        set_attempt(run.number)
        if not any(run.instance is known for known in self._instances):
            self._instances.append(run.instance)
        note(
            "run.started",
            run,
            checkpoint=run.checkpoint,
            resumes=None if run.resumes is None else run.resumes.number,
            latest=run.from_latest,
            twin=run.twin,
            message=repr(run.message),
            instance=next(index for index, known in enumerate(self._instances) if run.instance is known),
            answers=sorted(start.get("responses", ())),
        )
        if not isinstance(loop, ControlledLoop):
            await self._consume(run, start, stream=stream)
            return run
        kinds = [kind for fault in self._faults for kind in _AT_MOMENTS.get(fault, ())]
        if kinds or "hang" in self._faults:
            await self._go_with_fate(loop, run, start, stream=stream, kinds=kinds)
        else:
            owned = owners.begin(loop, run.number, root=getattr(asyncio.current_task(), "number", -1), own=False)
            await self._consume(run, start, stream=stream)
            _note_end(loop, run, owned)
        return run

    async def _go_with_fate(
        self, loop: ControlledLoop, run: Run, start: dict[str, Any], *, stream: bool, kinds: list[str]
    ) -> None:
        """Run in a task of its own, to which something may happen at a moment of the search's choice."""
        fate = Fate(loop, f"run {run.number}", kinds=kinds, memory=loop.memory)
        over: asyncio.Future[None] = loop.create_future()
        coro: Any = self._consume(run, start, stream=stream)
        coro.__name__ = "run"
        task = loop.create_task(coro)
        task.add_done_callback(lambda _: finish(over))
        owned = owners.begin(loop, run.number, root=task.number, own=True)
        self._tasks.append(task)
        fate.begin(strike(loop, run, fate, task=task, over=over, forget=forget_loop))
        try:
            await over
        finally:
            fate.end()
            self._tasks.remove(task)
        if run.ending != "crashed":
            if task.cancelled():
                run.ending = "cancelled"
            elif task.exception() is not None:
                raise task.exception()  # of the harness itself: the run's own errors are data
            _note_end(loop, run, owned)

    async def _consume(self, run: Run, start: dict[str, Any], *, stream: bool) -> None:
        """Run to an ending of the program's own, or until the consumer leaves the stream."""
        loop = asyncio.get_running_loop()
        leave: tuple[str, int] | None = None
        kinds = [kind for fault in self._faults for kind in _AT_EVENTS.get(fault, ())]
        if not can_close_streams():
            kinds = [kind for kind in kinds if kind != "closed"]
        if kinds and isinstance(loop, ControlledLoop):
            name = f"stream of run {run.number}"
            options = Moments(kinds, loop.memory.get(name, 40))
            leave = options.decode(loop.choose("fault", options, subject=name, interesting=True))
        try:
            if stream or kinds:
                await self._stream(run, start, leave)
            else:
                result = await run.instance.run(checkpoint_storage=self.storage, **start)
                run.outputs = list(result.get_outputs())
                run.requests = [event.request_id for event in result.get_request_info_events()]
                for request in run.requests:
                    note("run.request", run, request=request)
        except Exception as error:
            run.error = error
            run.ending = "failed"
        else:
            run.ending = run.ending or "returned"

    async def _stream(self, run: Run, start: dict[str, Any], leave: tuple[str, int] | None) -> None:
        loop = asyncio.get_running_loop()
        stream = run.instance.run(stream=True, checkpoint_storage=self.storage, **start)
        async for event in stream:
            run.events.append(event)
            note("run.event", run, type=event.type)
            if event.type == "output":
                run.outputs.append(event.data)
            if event.type == "request_info":
                run.requests.append(event.request_id)
                note("run.request", run, request=event.request_id)
            if leave is not None and len(run.events) == leave[1]:
                run.ending = leave[0]
                break
        if leave is None and isinstance(loop, ControlledLoop):
            name = f"stream of run {run.number}"
            loop.memory[name] = max(loop.memory.get(name, 0), len(run.events))
        if run.ending == "closed":
            await stream.close()
        elif run.ending == "dropped":
            event = stream = None
            gc.collect()  # the finalizer of the generator runs now, not when the process feels like it


def build(workflow: Any) -> Any:
    """Return a new instance of what ``@workflow`` made, or of what a function without arguments builds.

    Raises UsageError for anything else.
    """
    maker = getattr(workflow, "build", None)
    if callable(maker):
        return maker()
    if callable(getattr(workflow, "run", None)):
        return new_instance(workflow)
    made = workflow() if callable(workflow) else None
    if callable(getattr(made, "run", None)):
        return made
    raise UsageError(f"{workflow!r} is not a workflow: decorate an async function with @workflow, or pass a builder")


def _note_end(loop: ControlledLoop, run: Run, owned: owners.Ownership) -> None:
    """Note how a run ended, and which of its tasks are still alive."""
    owned.last = len(loop.births)
    left = [path_of(loop, task) for task in live_tasks(loop) if owners.owner_of(loop, task) == run.number]
    error = None if run.error is None else repr(run.error)
    values = [repr(output) for output in run.outputs]
    note("run.ended", run, how=run.ending, error=error, outputs=repr(run.outputs), values=values, left=left)
