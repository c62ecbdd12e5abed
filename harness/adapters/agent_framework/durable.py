"""Runs and resumes of one workflow inside one execution.

Owns ``durable``, the object that a scenario is written with; must not know schedulers or oracles.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection
from functools import partial
from typing import Any

from harness.adapters.agent_framework.endnotes import note_storage, result_of
from harness.adapters.agent_framework.observe import forget_loop
from harness.adapters.agent_framework.releases import can_close_streams, new_instance
from harness.adapters.agent_framework.storage import ControlledStorage
from harness.adapters.endings import Leave, note
from harness.adapters.references import note_references
from harness.adapters.runs import FAULTS as ANY_FAULTS
from harness.adapters.runs import Resume, Run, Runs, at_the_end, quiet
from harness.adapters.saves import choose_shape
from harness.model.errors import UsageError
from harness.runtime.loop import ControlledLoop
from harness.runtime.ops import Op
from harness.runtime.points import SHAPES_ON

# What a search may do to a run and to what follows it; each word switches some choices on.
FAULTS = (*ANY_FAULTS, "hang")


class Durable:
    """Runs workflows on the storage of this execution, and resumes them as another process would."""

    def __init__(
        self, storage: Any, *, shapes: bool = True, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> None:
        """faults: of FAULTS; the search may then let them happen. notes: what the oracles need beyond the usual."""
        self._runs = Runs(
            consume=self._consume, faults=faults, known=FAULTS, can_close=can_close_streams(), forget=forget_loop
        )
        loop = asyncio.get_running_loop()
        if shapes and isinstance(loop, ControlledLoop):
            loop.scratch[SHAPES_ON] = True
        self.storage = ControlledStorage(
            storage,
            shape=choose_shape(shapes=shapes),
            faults="storage" in faults,
            on_hang=self._hung if "hang" in faults else None,
            notes=notes,
        )
        self._notes = tuple(notes)

    @property
    def runs(self) -> list[Run]:
        """The runs so far."""
        return self._runs.all

    async def run(self, workflow: Any, message: Any, *, instance: Any = None, stream: bool = False) -> Run:
        """Run ``workflow`` from the beginning; however it ends is part of the returned Run.

        workflow: what ``@workflow`` returned, or a function that builds a workflow. instance: run this one
        instead of a new one. stream: consume the run's events one by one.
        """
        run = _run(len(self.runs), workflow, message, instance or build(workflow))
        run.notes.update(start={"message": message}, stream=stream)
        return await self._runs.go(run, answers=[])

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
        chosen = await self._runs.before_resume(run, given=checkpoint is not None)
        if checkpoint is None:
            checkpoint = await self._checkpoint(run, chosen)
        start: dict[str, Any] = {"message": run.message} if checkpoint is None else {"checkpoint_id": checkpoint}
        if responses is not None and checkpoint is not None:
            start["responses"] = responses
        instances = chosen.instances(run, partial(build, run.program), given=instance)
        resumed = [_run(len(self.runs) + index, run.program, run.message, made) for index, made in enumerate(instances)]
        for again in resumed:
            again.checkpoint, again.resumes = checkpoint, run
            again.from_latest, again.twin = chosen.place == "latest", len(resumed) > 1
            again.notes.update(start=start, stream=stream)
        return await self._runs.go_all(resumed, answers=sorted(start.get("responses", ())))

    async def quiet(self) -> None:
        """Wait until everything else has nothing left to do."""
        await quiet()

    async def finish(self) -> None:
        """Note what the oracles asked for when the program is over."""
        loop = await at_the_end(self._notes)
        if loop is None:
            return
        if {"storage", "contents"} & set(self._notes):
            await note_storage(loop, self.storage, names=list(dict.fromkeys(run.name for run in self.runs)))
        if "reference" in self._notes:
            await note_references(
                loop,
                [
                    (run.name, run.message, partial(result_of, partial(build, run.program), run.message))
                    for run in self.runs
                ],
            )

    def _hung(self, loop: ControlledLoop) -> None:
        """Cancel the runs when nothing else can happen: what somebody does who waits for a save that never ends."""

        def cancel(_op: Op) -> None:
            for task in self._runs.tasks:
                loop.call_soon(task.cancel)

        op = Op(loop, "patience", kind="point", deliver=cancel, target=loop.create_future())
        op.rank = 8
        loop.parked.append(op)  # no choice: it is no deviation that patience ends

    async def _checkpoint(self, run: Run, chosen: Resume) -> str | None:
        if chosen.place == "latest":
            latest = await self.storage.get_latest(workflow_name=run.name)
            return None if latest is None else str(latest.checkpoint_id)
        found = await self.storage.list_checkpoints(workflow_name=run.name)
        newest_first = sorted(found, key=lambda item: str(item.timestamp), reverse=True)
        return chosen.pick([str(item.checkpoint_id) for item in newest_first])

    async def _consume(self, run: Run, leave: Leave | None) -> None:
        start = run.notes["start"]
        if run.notes["stream"] or self._runs.streams:
            await self._stream(run, start, leave)
            return
        result = await run.instance.run(checkpoint_storage=self.storage, **start)
        run.outputs = list(result.get_outputs())
        run.requests = [event.request_id for event in result.get_request_info_events()]
        for request in run.requests:
            note("run.request", run, request=request)

    async def _stream(self, run: Run, start: dict[str, Any], leave: Leave | None) -> None:
        stream = run.instance.run(stream=True, checkpoint_storage=self.storage, **start)
        async for event in stream:
            run.events.append(event)
            note("run.event", run, type=event.type)
            if event.type == "output":
                run.outputs.append(event.data)
            if event.type == "request_info":
                run.requests.append(event.request_id)
                note("run.request", run, request=event.request_id)
            if leave is not None and len(run.events) == leave.after:
                run.ending = leave.how
                break
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


def _run(number: int, workflow: Any, message: Any, instance: Any) -> Run:
    return Run(number, str(getattr(instance, "name", "workflow")), workflow, message, instance=instance)
