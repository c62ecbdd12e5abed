"""What is noted when a program is over: the state of the storage, and how its runs end when nothing goes wrong.

Owns the notes that only some oracles ask for; must not judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.adapters.agent_framework.storage import ControlledStorage
from harness.runtime.attempt import attempt, set_attempt
from harness.runtime.loop import ControlledLoop

# Runs that only show what is right: no oracle looks at their steps, and no program fails them as its first attempt.
REFERENCE = 1_000_000


async def note_storage(loop: ControlledLoop, storage: ControlledStorage, *, names: Sequence[str]) -> None:
    """Note every checkpoint of the workflows called ``names``, and which one is the latest of each."""
    checkpoints: list[dict[str, Any]] = []
    latest: dict[str, str | None] = {}
    for name in names:
        checkpoints += [storage.facts(found) for found in await storage.inner.list_checkpoints(workflow_name=name)]
        newest = await storage.inner.get_latest(workflow_name=name)
        latest[name] = None if newest is None else str(newest.checkpoint_id)
    loop.note("storage.state", "", run=attempt(), checkpoints=checkpoints, latest=latest)


async def note_references(loop: ControlledLoop, runs: Iterable[tuple[Any, Callable[[], Any]]]) -> None:
    """Note how each message ends on an instance of its own, without a storage and without a fault."""
    before = attempt()
    known: list[tuple[str, str]] = []
    for message, make in runs:
        set_attempt(REFERENCE)
        instance = make()
        key = (str(getattr(instance, "name", "workflow")), repr(message))
        if key in known:
            continue
        known.append(key)
        outputs: list[str] = []
        requests: list[str] = []
        error: str | None = None
        try:
            result = await instance.run(message)
            outputs = [repr(output) for output in result.get_outputs()]
            requests = [event.request_id for event in result.get_request_info_events()]
        except Exception as failure:
            error = repr(failure)
        loop.note(
            "run.reference", key[0], run=REFERENCE, message=key[1], values=outputs, requests=requests, error=error
        )
    set_attempt(before)
