"""What differs between the releases of agent-framework, 1.0 to 1.23, found by looking and not by version.

Owns the stand-ins for what an older release lacks; must not know runs or journals.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from agent_framework import ResponseStream

from harness.runtime.loop import ControlledLoop
from harness.runtime.task_sets import TaskDict, TaskSet


class _NoRunContext:
    """Stands for RunContext where there are only graph workflows."""

    async def add_event(self, event: Any) -> None:
        """Never called."""


class _NoStepWrapper:
    """Stands for StepWrapper where there are only graph workflows."""

    name = ""

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Never called."""


class _NoFunctionalWorkflow:
    """Stands for FunctionalWorkflow where there are only graph workflows."""

    async def _execute(self, ctx: Any, message: Any) -> Any:
        """Never called."""


def _find_functional() -> Any:
    try:
        return importlib.import_module("agent_framework._workflows._functional")  # since 1.2
    except ModuleNotFoundError:
        return SimpleNamespace(
            RunContext=_NoRunContext,
            StepWrapper=_NoStepWrapper,
            FunctionalWorkflow=_NoFunctionalWorkflow,
        )


functional: Any = _find_functional()
RunContext: Any = functional.RunContext
StepWrapper: Any = functional.StepWrapper
FunctionalWorkflow: Any = functional.FunctionalWorkflow


def new_instance(workflow: Any) -> Any:
    """Return a new instance of a functional workflow that runs; any other that runs is used as it is.

    Before 1.14 a function under ``@workflow`` is itself the only instance, with the state of its runs.
    """
    if isinstance(workflow, FunctionalWorkflow):
        return type(workflow)(workflow._func, name=workflow.name, description=workflow.description)
    return workflow


@contextlib.contextmanager
def disassembled_once() -> Iterator[None]:
    """Let each new instance of a workflow find its code disassembled, a tenth of the cost of a short run (since 1.14).

    Source: FunctionalWorkflow._discover_workflow_dependencies, _functional.py at 1.23.0.
    """
    original = getattr(functional, "dis", None)
    if original is None:
        yield
        return
    instructions = functools.lru_cache(maxsize=1024)(lambda code: tuple(dis.get_instructions(code)))
    functional.dis = SimpleNamespace(get_instructions=instructions)
    try:
        yield
    finally:
        functional.dis = original


def can_close_streams() -> bool:
    """Return whether a consumer can close a stream, and not only drop it (since 1.20)."""
    return hasattr(ResponseStream, "close")


def has_task_sweep() -> bool:
    """Return whether a failed functional run cancels its tasks (since 1.22)."""
    return hasattr(RunContext, "_cancel_workflow_tasks")


# Where a run context keeps tasks and futures, since 1.22.
_TASK_SETS = (
    "_workflow_tasks",
    "_framework_cancelled_tasks",
    "_step_tasks",
    "_pause_step_entry_tasks",
    "_pause_owned_tasks",
    "_pause_failure_boundaries",
)
_TASK_DICTS = (
    "_workflow_task_parents",
    "_active_step_tasks",
    "_pause_boundary_waiters",
    "_pause_adapter_sources",
    "_task_interruptions",
)


def keep_tasks(ctx: Any, loop: ControlledLoop) -> None:
    """Let a new run context keep its tasks where their order is decided when it is looked at."""
    for name in _TASK_SETS:
        if getattr(ctx, name, None) == set():
            setattr(ctx, name, TaskSet(loop))
    for name in _TASK_DICTS:
        if getattr(ctx, name, None) == {}:
            setattr(ctx, name, TaskDict())
