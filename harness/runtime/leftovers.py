"""What is left after an ending: cancelled, unwound and closed, so that none of it reaches the next execution.

Owns the clean-up of one loop; must not know how the program ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from harness.model.errors import StalledError
from harness.runtime.identity import path_of
from harness.runtime.lanes import NO_RUN
from harness.runtime.loop import ControlledLoop
from harness.runtime.silence import Noise, name_of, silenced
from harness.runtime.unhandled import describe_unhandled
from harness.runtime.waits import live_tasks

# What is left after an ending gets this many turns to unwind, and so many more for each task; the rest is
# abandoned by name.
CLEANUP_TURNS = 1_000
CLEANUP_TURNS_PER_TASK = 20
# Fields through which a loop may refer to itself; the clock keeps a closed loop until the next execution.
_CYCLIC = ("early", "scratch", "interesting_tasks")


def clean_up(loop: ControlledLoop, noise: Noise) -> tuple[str, ...]:
    """Cancel what is left, as ``asyncio.run`` does, in default order; return what would not end.

    What will not end is closed here, so that none of it runs later, in another execution.
    """
    fields = vars(loop)
    left, dead = live_tasks(loop), fields.get("graveyard")
    if not (left or dead or loop.parked or fields.get("_asyncgens")):
        return ()
    loop.scheduler = loop.ran = loop.draw = None
    loop.tracing = loop.by_lanes = False
    if dead:
        left = [task for task in left if task not in dead]
    generators = list(loop._asyncgens)
    loop.forget_ranks()
    loop.countdowns.clear()
    loop.set_exception_handler(lambda _loop, context: noise.note(describe_unhandled(context)))
    for task in left:
        task.cancel()
    turns = CLEANUP_TURNS + CLEANUP_TURNS_PER_TASK * len(left)
    for work in (_gather(left), loop.shutdown_asyncgens(), _drain(loop)):
        loop.settings = replace(loop.settings, turn_limit=loop.turn + turns, external_wait_s=0.05)
        with contextlib.suppress(Exception, StalledError, asyncio.CancelledError):
            loop.run_until_complete(work)
    names = [path_of(loop, task) for task in left if not task.done()]
    names += [f"generator {generator.__name__}" for generator in generators if generator.ag_frame is not None]
    generators.clear()
    with _unlogged() if dead else contextlib.nullcontext():
        _close_tasks(loop, noise)
    return tuple(names)


def _close_tasks(loop: ControlledLoop, noise: Noise) -> None:
    """Close the coroutines of the tasks that would not end, as if they were inside the loop.

    Their ``finally`` blocks may make new tasks, which are closed before their first turn.
    """
    for _ in range(3):
        tasks = live_tasks(loop)
        if not tasks:
            return
        asyncio._set_running_loop(loop)
        try:
            for task in tasks:
                task._log_destroy_pending = False
                _close_coroutine(task.get_coro(), noise)
        finally:
            asyncio._set_running_loop(None)


def _close_coroutine(coro: Any, noise: Noise) -> None:
    try:
        coro.close()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # anything may come out of a program's clean-up; it is past its ending
        noise.note(f"{name_of(coro)} raised {type(error).__name__} while it was closed")


async def _gather(tasks: list[Any]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _drain(loop: ControlledLoop) -> None:
    """Let jobs that were submitted finish, as ``shutdown_default_executor`` does."""
    while any(op.kind == "job" for op in loop.parked):
        await loop.park("drain")


def close(loop: ControlledLoop) -> None:
    """Close the loop and break its cycles, so that it is freed at once."""
    loop.parked.clear()
    loop.countdowns.clear()
    loop.run_of_turns = NO_RUN
    fields = vars(loop)
    for name in _CYCLIC:
        if name in fields:
            fields[name].clear()
    if fields.get("graveyard"):
        with _unlogged():
            loop.graveyard.clear()
            collect()
    if loop._thread_id is None:
        loop.close()


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Keep the clean-up of a crashed run, which never happened, out of the logs."""
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(disabled)


def collect() -> None:
    """Collect what closed executions left, silently: their coroutines may misbehave outside their context."""
    with silenced(Noise()):
        gc.collect()
