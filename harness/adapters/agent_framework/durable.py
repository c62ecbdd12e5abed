"""Runs and resumes of one workflow inside one execution.

Owns ``durable``, the object that a scenario is written with; must not know schedulers or oracles.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from harness.adapters.agent_framework.storage import ControlledStorage
from harness.model.errors import UsageError
from harness.runtime.attempt import set_attempt
from harness.runtime.loop import ControlledLoop
from harness.runtime.points import SHAPES_ON
from harness.runtime.shapes import SHAPES


@dataclass(slots=True)
class Run:
    """One run of a workflow, and how it ended.

    number: 0 for the first run of the execution. checkpoint: the id that it resumed from, or None.
    resumes: the run that it continues, or None.
    outputs: what it returned; empty when it failed. error: what it raised, or None.
    """

    number: int
    workflow: Any
    message: Any
    checkpoint: str | None = None
    outputs: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    resumes: Run | None = None


class Durable:
    """Runs workflows on the storage of this execution, and resumes them as another process would."""

    def __init__(self, storage: Any, *, shapes: bool = True) -> None:
        loop = asyncio.get_running_loop()
        shape = "as-is"
        if shapes and isinstance(loop, ControlledLoop):
            loop.scratch[SHAPES_ON] = True
            names = tuple(SHAPES)
            shape = names[loop.choose("shape", names, subject="save", interesting=True)]
        self.storage = ControlledStorage(storage, shape=shape)
        self.runs: list[Run] = []

    async def run(self, workflow: Any, message: Any) -> Run:
        """Run ``workflow`` from the beginning; a failure of it is part of the returned Run.

        workflow: what ``@workflow`` returned. A new instance is built for each run.
        """
        return await self._go(Run(len(self.runs), workflow, message), {"message": message})

    async def resume(self, run: Run) -> Run:
        """Resume ``run`` from the latest checkpoint on a fresh instance.

        Without any checkpoint, the workflow is run from the beginning, as its caller would do.
        """
        latest = await self.storage.get_latest(workflow_name=run.workflow.name)
        checkpoint = None if latest is None else latest.checkpoint_id
        resumed = Run(len(self.runs), run.workflow, run.message, checkpoint, resumes=run)
        start = {"message": run.message} if checkpoint is None else {"checkpoint_id": checkpoint}
        return await self._go(resumed, start)

    async def _go(self, run: Run, start: dict[str, Any]) -> Run:
        instance = build(run.workflow)
        self.runs.append(run)
        set_attempt(run.number)
        _note(
            "run.started", run, checkpoint=run.checkpoint, resumes=None if run.resumes is None else run.resumes.number
        )
        try:
            result = await instance.run(checkpoint_storage=self.storage, **start)
        except Exception as error:
            run.error = error
        else:
            run.outputs = list(result.get_outputs())
        _note("run.ended", run, error=None if run.error is None else repr(run.error))
        return run


def build(workflow: Any) -> Any:
    """Return a new instance of what ``@workflow`` made.

    Raises UsageError for anything else.
    """
    maker = getattr(workflow, "build", None)
    if callable(maker):
        return maker()
    raise UsageError(f"{workflow!r} is not a workflow: decorate an async function with @workflow")


def _note(kind: str, run: Run, **data: Any) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        loop.note(kind, run.workflow.name, run=run.number, **data)
