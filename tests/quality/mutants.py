"""Planted mutants of the fix shielded-save: each is its source with one thing wrong.

A change of the fix that a mutant no longer applies to fails its test, so that none is lost in silence.
"""

import inspect
from dataclasses import replace

from harness.adapters.agent_framework.fixes import shielded_save

WAIT = """    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(asyncio.gather(task, return_exceptions=True))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
"""
DRAIN = """            for task in _saves(self):
                await _wait_through_cancellation(task)
"""
# Without a drain, the sweep is over when only saves are left.
OVER = ("if not pending and not saves:", "if not pending:")
SPARED = "and task not in spared"
# Name to pairs of what is replaced and by what.
MUTANTS = {
    "no_shield": [("await asyncio.shield(asyncio.gather(task, return_exceptions=True))", "await task")],
    "no_drain": [(WAIT, "    await asyncio.wait({task})\n"), (DRAIN, ""), OVER],
    "swapped_lines": [
        (
            "        _saves(ctx).append(task)\n        await _wait_through_cancellation(task)\n",
            "        await _wait_through_cancellation(task)\n        _saves(ctx).append(task)\n",
        )
    ],
    "nothing_spared": [(f" {SPARED}", "")],
    "only_saves_swept": [(SPARED, "and task in spared")],
    "children_swept": [("task = ctx._workflow_task_parents.get(task)", "return False")],
    "forgets_saves_in_flight": [("saves[:] = [task for task in saves if not task.done()]", "saves.clear()")],
    "callback_not_shielded": [("else _shielded(self, save)", "else save")],
    "passes_cancellation_on": [
        ("            cancelled = error\n", "            cancelled = error\n            task.cancel()\n")
    ],
    "gives_up_when_cancelled": [
        (WAIT, "    await asyncio.shield(task)\n"),
        (DRAIN, ""),
        OVER,
    ],
    "looks_too_late": [
        ("            saves = _saves(self)\n", "            saves = []\n"),
    ],
}


def mutant(name):
    """Return the context manager of a mutant."""
    source = inspect.getsource(shielded_save)
    for old, new in MUTANTS[name]:
        assert source.count(old) == 1, f"{name}: the fix has changed: {old!r}"
        source = source.replace(old, new)
    space = {"__name__": f"tests.quality.mutant_{name}"}
    exec(compile(source, f"<{name}>", "exec"), space)
    return space["apply"]


def with_mutant(target, name):
    """Return ``target`` with a mutant applied to the framework."""
    return replace(target, patches=(*target.patches, lambda _session: mutant(name)()))
