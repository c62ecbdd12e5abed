"""What LangGraph does, as journal events, and its tasks under the names of their nodes.

Owns the patches that observe, and what a call is: a node in a superstep; must not judge. No patch adds a turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from langgraph.constants import START
from langgraph.errors import GraphBubbleUp
from langgraph.pregel import _runner
from langgraph.pregel._loop import AsyncPregelLoop, PregelLoop
from langgraph.pregel._runner import PregelRunner

from harness.adapters.aiosqlite import controlled_connections
from harness.adapters.owners import cancellations_noted
from harness.runtime.attempt import attempt
from harness.runtime.identity import ControlledTask, see_through
from harness.runtime.loop import ControlledLoop

_DONE = "langgraph.completed"


class Completed(NamedTuple):
    """A node that finished: the run, the namespace of its graph, the superstep, its task, and the call."""

    run: int
    namespace: str
    step: int
    task: str
    call: str


def completed_calls(loop: ControlledLoop) -> list[Completed]:
    """Return the nodes that finished so far in this execution, oldest first."""
    found: list[Completed] = loop.scratch.setdefault(_DONE, [])
    return found


@contextlib.contextmanager
def observed(notes: Collection[str] = ()) -> Iterator[None]:
    """Write what graphs do to the journal of the controlled loop that runs them; aiosqlite runs as jobs.

    notes: ``cancellations`` for who cancels whom.
    """
    original_run = _runner.arun_with_retry
    original_commit = PregelRunner.commit
    original_tick = PregelLoop.tick

    async def run_node(task: Any, *args: Any, **kwargs: Any) -> Any:
        _note("invoked", task)
        return await original_run(task, *args, **kwargs)

    def commit(self: PregelRunner, task: Any, exception: BaseException | None) -> None:
        if exception is None:
            _note("completed", task, value=_written(task))
        elif not isinstance(exception, GraphBubbleUp):
            # a node that is cancelled when it has written is restored all the same: its writes are put with the error
            wrote = {"wrote": _written(task)} if task.writes else {}
            _note("failed", task, value=repr(exception), **wrote)
        original_commit(self, task, exception)  # it puts the writes: the completion comes first

    def tick(self: PregelLoop) -> bool:
        goes_on: bool = original_tick(self)
        for task in self.tasks.values() if goes_on else ():
            if task.writes:  # found in the checkpoint, so the runner will not run it
                _note("restored", task, value=_written(task))
        return goes_on

    original_eager = getattr(asyncio, "eager_task_factory", None)  # since Python 3.12

    def eager_task(loop: Any, coro: Any, **kwargs: Any) -> Any:
        if isinstance(loop, ControlledLoop):
            return ControlledTask(coro, loop=loop, eager_start=True, **kwargs)
        return original_eager(loop, coro, **kwargs)  # type: ignore[misc]

    see_through(run_node.__code__, _local("task", "name"))
    see_through(AsyncPregelLoop._checkpointer_put_after_previous.__code__, lambda _: "put")
    _runner.arun_with_retry = run_node
    PregelRunner.commit = commit
    PregelLoop.tick = tick
    if original_eager is not None:
        # LangGraph makes the tasks of its saves with it, and they would hash by address.
        asyncio.eager_task_factory = eager_task  # type: ignore[attr-defined]
    try:
        with controlled_connections(), cancellations_noted() if "cancellations" in notes else contextlib.nullcontext():
            yield
    finally:
        _runner.arun_with_retry = original_run
        PregelRunner.commit = original_commit
        PregelLoop.tick = original_tick
        if original_eager is not None:
            asyncio.eager_task_factory = original_eager  # type: ignore[attr-defined]


def _note(kind: str, task: Any, **data: Any) -> None:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ControlledLoop) or task.name == START:
        return  # START is a node of LangGraph's own, which writes the input
    call = call_of(task)
    loop.note(f"step.{kind}", task.name, run=attempt(), call=call, **data)
    if kind == "completed":
        completed_calls(loop).append(Completed(attempt(), namespace_of(task), _step(task), task.id, call))


def _written(task: Any) -> str:
    """Return what a node wrote, without the channels that only say who comes next."""
    return repr([tuple(write) for write in task.writes if not write[0].startswith("branch:")])


def call_of(task: Any) -> str:
    """Return the logical call of a task, such as ``charge({'order': 7})@1``.

    The superstep tells the rounds of a cycle apart, and the index those of ``Send``. Task ids do not serve: they
    hash the checkpoint's id, and a run that begins again has another one.
    """
    names = [part.partition(":")[0] for part in namespace_of(task).split("|") if part]
    sent = [str(part) for part in task.path[1:] if isinstance(part, int)] if task.path[0] == "__pregel_push" else []
    return f"{'/'.join([*names, task.name])}({task.input!r})@{'.'.join([str(_step(task)), *sent])}"


def covered_calls(loop: ControlledLoop, namespace: str, *, step: int) -> list[str]:
    """Return the calls of the current run whose results a checkpoint of superstep ``step`` holds.

    These are the nodes of the graph in ``namespace`` up to that superstep, and what ran inside them.
    """
    done = [item for item in completed_calls(loop) if item.run == attempt()]
    own = {item.task for item in done if item.namespace == namespace and item.step <= step}
    inside = f"{namespace}|" if namespace else ""
    covered = []
    for item in done:
        owner = item.task
        if item.namespace != namespace:
            if not item.namespace.startswith(inside):
                continue
            owner = item.namespace.removeprefix(inside).partition("|")[0].rpartition(":")[2]
        if owner in own:
            covered.append(item.call)
    return covered


def _step(task: Any) -> int:
    return int(task.config.get("metadata", {}).get("langgraph_step", -1))


def namespace_of(task: Any) -> str:
    """Return the checkpoint namespace of the graph that a task belongs to; the outermost is ""."""
    own = str(task.config.get("metadata", {}).get("langgraph_checkpoint_ns", ""))
    return own.rpartition("|")[0]


def _local(variable: str, attribute: str) -> Any:
    def resolve(coro: Any) -> str | None:
        value = None if coro.cr_frame is None else coro.cr_frame.f_locals.get(variable)
        return None if value is None else str(getattr(value, attribute))

    return resolve
