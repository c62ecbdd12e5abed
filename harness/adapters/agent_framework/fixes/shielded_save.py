"""Fix candidate: the per-step save runs as its own task, which the sweep spares and drains.

Owns the emulation, undone when the context ends; must not touch the installed files.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from harness.adapters.agent_framework.releases import RunContext, has_task_sweep

Save = Callable[[], Awaitable[None]]


def _saves(ctx: Any) -> list[asyncio.Task[None]]:
    """Return the run's saves in flight, oldest first."""
    saves: list[asyncio.Task[None]] = ctx.__dict__.setdefault("_saves_in_flight", [])
    saves[:] = [task for task in saves if not task.done()]
    return saves


def _shielded(ctx: Any, save: Save) -> Save:
    """Return a callback that runs ``save`` to its end whatever happens to the step."""

    async def save_in_own_task() -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(save())
        _saves(ctx).append(task)
        await _wait_through_cancellation(task)
        task.result()

    return save_in_own_task


async def _wait_through_cancellation(task: asyncio.Task[None]) -> None:
    """Wait until ``task`` is done; deliver a cancellation that came meanwhile only then."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(asyncio.gather(task, return_exceptions=True))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _belongs_to(ctx: Any, task: Any, saves: list[asyncio.Task[None]]) -> bool:
    """Return whether ``task`` is one of ``saves`` or was created under one, as storages do."""
    while task is not None:
        if task in saves:
            return True
        task = ctx._workflow_task_parents.get(task)
    return False


@contextlib.contextmanager
def apply() -> Iterator[None]:
    """Shield the per-step saves and make the sweep spare them, where there is one."""
    sweeps = has_task_sweep()
    sweep = RunContext._cancel_workflow_tasks if sweeps else None

    async def _cancel_workflow_tasks(self: Any) -> None:
        """Sweep as RunContext does at 1.23.0, but for saves; also for those that begin while it sweeps."""
        current = asyncio.current_task()
        while True:
            saves = _saves(self)
            spared = [task for task in self._workflow_task_parents if _belongs_to(self, task, saves)]
            pending = [
                task for task in self._workflow_tasks if task is not current and not task.done() and task not in spared
            ]
            if not pending and not saves:
                return
            for task in pending:
                self._cancel_workflow_task(task)
            if pending:
                await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in _saves(self):
                await _wait_through_cancellation(task)

    def get_callback(self: Any) -> Save | None:
        save: Save | None = self.__dict__.get("_plain_save")
        return None if save is None else _shielded(self, save)

    def set_callback(self: Any, save: Save | None) -> None:
        self.__dict__["_plain_save"] = save

    if sweeps:
        RunContext._cancel_workflow_tasks = _cancel_workflow_tasks
    RunContext._on_step_completed = property(get_callback, set_callback)
    try:
        yield
    finally:
        if sweeps:
            RunContext._cancel_workflow_tasks = sweep
        del RunContext._on_step_completed


PLUGIN = apply
