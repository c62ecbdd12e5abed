"""What agent-framework does, as journal events, and its tasks under their own names.

Owns the patches that observe; must not judge. No patch adds a turn: what is observed is what would have run.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import zlib
from collections.abc import Collection, Iterator
from typing import Any

from agent_framework._workflows._runner_context import InProcRunnerContext

from harness.adapters.agent_framework.releases import (
    RunContext,
    StepWrapper,
    disassembled_once,
    functional,
    keep_tasks,
)
from harness.adapters.owners import cancellations_noted
from harness.runtime.attempt import attempt
from harness.runtime.identity import make_task, see_through
from harness.runtime.loop import ControlledLoop
from harness.runtime.task_sets import searched_loop

# agent-framework emits these around a step's body: invoked right before it, completed right after it
# (StepWrapper.__call__, _functional.py at 1.23.0), and bypassed instead of both when the cache has the result.
_KINDS = {
    "executor_invoked": "invoked",
    "executor_completed": "completed",
    "executor_failed": "failed",
    "executor_bypassed": "restored",
    "output": "output",
}
_STEP_CALL = StepWrapper.__call__


@contextlib.contextmanager
def observed(notes: Collection[str] = ()) -> Iterator[None]:
    """Write the events of workflows to the journal of the controlled loop that runs them.

    notes: ``decisions`` for what the body of a workflow sees of a step, ``cancellations`` for who cancels whom.
    """
    _name_tasks()
    original = RunContext.add_event

    async def add_event(self: RunContext, event: Any) -> None:
        await original(self, event)
        kind = _KINDS.get(event.type)
        if kind is not None and kind != "output":
            _note_step(kind, event)

    original_graph = InProcRunnerContext.add_event

    async def add_graph_event(self: InProcRunnerContext, event: Any) -> None:
        await original_graph(self, event)
        kind = _KINDS.get(event.type)
        loop = asyncio.get_running_loop()
        if kind is not None and isinstance(loop, ControlledLoop):
            call = _executor_call(loop, kind, event)
            loop.note(f"executor.{kind}", event.executor_id, run=attempt(), value=repr(event.data), call=call)

    original_init = RunContext.__init__

    def __init__(self: RunContext, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        loop = searched_loop()
        if loop is not None:
            keep_tasks(self, loop)

    RunContext.__init__ = __init__
    RunContext.add_event = add_event
    InProcRunnerContext.add_event = add_graph_event  # type: ignore[method-assign]
    try:
        with contextlib.ExitStack() as more:
            more.enter_context(disassembled_once())
            more.enter_context(_steps_hashed_by_name())
            if "decisions" in notes:
                more.enter_context(_decisions_noted())
            if "cancellations" in notes:
                more.enter_context(cancellations_noted())
            yield
    finally:
        RunContext.__init__ = original_init
        RunContext.add_event = original
        InProcRunnerContext.add_event = original_graph  # type: ignore[method-assign]


@contextlib.contextmanager
def _steps_hashed_by_name() -> Iterator[None]:
    """Let sets of steps iterate alike in every process: a run keeps what it finds in a set of them as dicts.

    Each run makes such sets anew (``_discover_workflow_dependencies``, _functional.py at 1.23.0).
    """
    original = StepWrapper.__hash__
    StepWrapper.__hash__ = lambda self: zlib.crc32(f"{self._func.__module__}.{self._func.__qualname__}".encode())
    try:
        yield
    finally:
        StepWrapper.__hash__ = original


@contextlib.contextmanager
def _decisions_noted() -> Iterator[None]:
    """Note whether a step returned or raised to the body that called it."""

    async def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = await _STEP_CALL(self, *args, **kwargs)
        except Exception as error:
            _note_decision("raised", self.name, _call_text(args, kwargs), repr(error))
            raise
        _note_decision("returned", self.name, _call_text(args, kwargs), repr(result))
        return result

    see_through(__call__.__code__, _step_name)
    StepWrapper.__call__ = __call__
    try:
        yield
    finally:
        StepWrapper.__call__ = _STEP_CALL


def forget_loop(loop: ControlledLoop) -> None:
    """Undo what a run that died in mid-flight left on the loop and in the framework's module."""
    states: Any = getattr(functional, "_workflow_task_factory_states", {})
    states.pop(loop, None)
    loop.set_task_factory(make_task)  # type: ignore[arg-type]


def _executor_call(loop: ControlledLoop, kind: str, event: Any) -> str:
    """Return the executor's name with its message, which only its first event carries.

    An executor ends its messages in the order in which it takes them.
    """
    begun: dict[tuple[int, str], list[str]] = loop.scratch.setdefault("executor calls", {})
    calls = begun.setdefault((attempt(), event.executor_id), [])
    if kind == "invoked":
        calls.append(f"{event.executor_id}({event.data!r})")
        return calls[-1]
    if kind in ("completed", "failed") and calls:
        return calls.pop(0)
    return str(event.executor_id)


def _note_step(kind: str, event: Any) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        call = f"{event.executor_id}{_arguments()}"
        loop.note(f"step.{kind}", event.executor_id, run=attempt(), call=call, value=repr(event.data))


def _note_decision(kind: str, name: str, arguments: str, value: str) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        loop.note(f"step.{kind}", name, run=attempt(), call=name + arguments, value=value)


def _arguments() -> str:
    """Return the arguments of the step call that emits an event, such as ``(7, unit='kg')``.

    Events of restored steps carry none, so they are read from the frame of ``StepWrapper.__call__``.
    """
    frame = sys._getframe(2)
    while frame is not None and frame.f_code is not _STEP_CALL.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return "()"
    return _call_text(frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {}))


def _call_text(args: Any, kwargs: Any) -> str:
    parts = [repr(value) for value in args]
    parts += [f"{key}={value!r}" for key, value in sorted(kwargs.items())]
    return f"({', '.join(parts)})"


def _free_variable(name: str) -> Any:
    def resolve(coro: Any) -> Any:
        frame = coro.cr_frame
        return None if frame is None else frame.f_locals.get(name)

    return resolve


def _step_name(coro: Any) -> str | None:
    frame = coro.cr_frame
    wrapper = None if frame is None else frame.f_locals.get("self")
    return wrapper.name if isinstance(wrapper, StepWrapper) else None


def _workflow_name(coro: Any) -> str | None:
    frame = coro.cr_frame
    workflow = None if frame is None else frame.f_locals.get("self")
    return getattr(workflow, "name", None)


def _name_tasks() -> None:
    """See through the coroutines that agent-framework wraps around workflows and steps."""
    see_through(_STEP_CALL.__code__, _step_name)
    factory_state = getattr(functional, "_WorkflowTaskFactoryState", None)
    if factory_state is not None:
        for code in _nested(factory_state._create_task.__code__):
            if code.co_name == "_tracked_coro":
                see_through(code, _free_variable("coro"))
    for code in _nested(inspect.unwrap(functional.FunctionalWorkflow._execute).__code__):
        if code.co_name == "_invoke_workflow":
            see_through(code, _workflow_name)


def _nested(code: Any) -> list[Any]:
    return [const for const in code.co_consts if inspect.iscode(const)]
