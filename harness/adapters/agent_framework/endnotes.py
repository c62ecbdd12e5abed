"""What is noted when a program is over: the state of the storage, and how a message ends when nothing goes wrong.

Owns the notes that only some oracles ask for; must not judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.adapters.agent_framework.storage import ControlledStorage
from harness.runtime.attempt import attempt
from harness.runtime.loop import ControlledLoop


async def note_storage(loop: ControlledLoop, storage: ControlledStorage, *, names: Sequence[str]) -> None:
    """Note every checkpoint of the workflows called ``names``, and which one is the latest of each."""
    checkpoints: list[dict[str, Any]] = []
    latest: dict[str, str | None] = {}
    for name in names:
        checkpoints += [storage.facts(found) for found in await storage.inner.list_checkpoints(workflow_name=name)]
        newest = await storage.inner.get_latest(workflow_name=name)
        latest[name] = None if newest is None else str(newest.checkpoint_id)
    loop.note("storage.state", "", run=attempt(), checkpoints=checkpoints, latest=latest)


async def result_of(make: Callable[[], Any], message: Any) -> tuple[list[Any], list[str]]:
    """Return what ``message`` ends with on a new instance without a storage, and the ids of what it asks."""
    result = await make().run(message)
    return list(result.get_outputs()), [event.request_id for event in result.get_request_info_events()]
