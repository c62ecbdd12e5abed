"""``harness.check_storage``: the storage contract, await shapes and faults against a user's own storage.

Owns the contract as programs; must not know how a storage is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from agent_framework import WorkflowCheckpoint

from harness.adapters.agent_framework.storage import ControlledStorage
from harness.adapters.contents import digest
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import StorageRoom, clock_patch, load_adapter
from harness.model.errors import HarnessError, UsageError
from harness.model.rung import Rung
from harness.report.lines import plain
from harness.report.text import failure_report
from harness.runtime.shapes import SHAPES
from harness.search.explain import explanation_of
from harness.search.portfolio import search
from harness.search.target import Target

WORKFLOW = "harness-check"


class StorageContractError(HarnessError, AssertionError):
    """A storage breaks its contract; the message is the report."""


@dataclass(frozen=True, slots=True)
class StorageReport:
    """What was checked. checks: names of the promises. executions: how many it took."""

    storage: str
    checks: tuple[str, ...]
    executions: int


def check_storage(
    factory: Callable[[], Any], *, budget: int = 60, clock: str = "increasing", allow_real_io: bool = False
) -> StorageReport:
    """Check a checkpoint storage: its contract, in every await shape, with saves at once and cancelled ones.

    factory: returns a new and empty storage each time it is called; called on the controlled loop. budget:
    executions per promise. allow_real_io: the storage uses sockets or threads; replays are then not guaranteed.
    Raises StorageContractError with the smallest schedule that breaks a promise, and UsageError for what is
    no storage at all.
    """
    if not callable(factory):
        raise UsageError(f"check_storage takes a function that makes a storage, not {factory!r}")
    room = StorageRoom(load_adapter("agent-framework"), "checked", lambda _: factory())
    executions = 0
    name = ""
    for check, title in _CHECKS.items():
        program = _Program(check, room)
        target = Target(
            name=check.__name__,
            program=program,
            patches=(lambda _: room.open(), clock_patch(clock)),
            rung=Rung.LATENCY,
            allow_real_io=allow_real_io,
        )
        result = search(target, phases=make_phases(rung=target.rung), budget=budget)
        if result.interrupted:
            raise KeyboardInterrupt
        executions += result.executions
        name = program.storage or name
        found = result.counterexample
        if found is None:
            continue
        error = found.execution.ending.error
        if isinstance(error, UsageError):
            raise error
        explanation = explanation_of(target, found, title=f"{name}: {title}")
        raise StorageContractError(plain(failure_report(explanation, replay="run this check again")))
    return StorageReport(name, tuple(_CHECKS.values()), executions)


class _Program:
    """Makes the coroutine of one execution: a fresh storage in the await shape that the search chooses."""

    def __init__(self, check: Callable[[Any], Coroutine[Any, Any, None]], room: StorageRoom) -> None:
        self._check = check
        self._room = room
        self.storage = ""
        self.__name__ = check.__name__

    async def _run(self) -> None:
        loop: Any = asyncio.get_running_loop()
        names = tuple(SHAPES)
        shape = names[loop.choose("shape", names, subject="save", interesting=True)]
        inner = self._room.fresh_storage()
        self.storage = type(inner).__name__
        await self._check(ControlledStorage(inner, shape=shape))

    def __call__(self) -> Coroutine[Any, Any, None]:
        coro: Any = self._run()
        coro.__name__ = self._check.__name__
        return coro  # type: ignore[no-any-return]


def make_checkpoint(number: int, *, workflow: str = WORKFLOW, previous: str | None = None) -> WorkflowCheckpoint:
    """Return a checkpoint; a greater number is later. Its state has nested containers and text beyond ASCII."""
    return WorkflowCheckpoint(
        workflow_name=workflow,
        graph_signature_hash="signature",
        checkpoint_id=f"checkpoint-{number}",
        previous_checkpoint_id=previous,
        timestamp=f"2024-01-01T00:00:{number:02d}.000000+00:00",
        state={"_step_cache": {f"step{number}": {"größe": [1, 2.5, None, "✓"]}}, "key": number},
    )


async def keeps_what_it_is_given(storage: Any) -> None:
    """What was saved is loaded, equal and independent."""
    original = make_checkpoint(1)
    before = digest(original)
    returned = await storage.save(original)
    _expect(returned == "checkpoint-1", f"save() returned {returned!r}, not the checkpoint's id")
    original.state["key"] = "changed after the save"
    loaded = await storage.load("checkpoint-1")
    _expect(digest(loaded) == before, "load() does not return what was saved: the stored checkpoint changed or differs")
    loaded.state["key"] = "changed after the load"
    again = await storage.load("checkpoint-1")
    _expect(digest(again) == before, "a loaded checkpoint is the stored one: changing it changes the storage")


async def lists_and_finds_the_latest(storage: Any) -> None:
    """Workflows are kept apart, and the latest is the one with the greatest timestamp."""
    latest = await storage.get_latest(workflow_name=WORKFLOW)
    _expect(latest is None, f"get_latest() of an empty storage returned {latest!r}, not None")
    for number in (1, 2, 3):
        await storage.save(make_checkpoint(number))
    await storage.save(make_checkpoint(9, workflow="another"))
    ids = sorted(await storage.list_checkpoint_ids(workflow_name=WORKFLOW))
    _expect(ids == ["checkpoint-1", "checkpoint-2", "checkpoint-3"], f"list_checkpoint_ids() returned {ids}")
    found = sorted(item.checkpoint_id for item in await storage.list_checkpoints(workflow_name=WORKFLOW))
    _expect(found == ids, f"list_checkpoints() returned {found}, list_checkpoint_ids() {ids}")
    latest = await storage.get_latest(workflow_name=WORKFLOW)
    _expect(latest is not None and latest.checkpoint_id == "checkpoint-3", f"get_latest() returned {_name(latest)}")


async def deletes(storage: Any) -> None:
    """What was deleted is gone, once."""
    await storage.save(make_checkpoint(1))
    _expect(await storage.delete("checkpoint-1") is True, "delete() of a stored checkpoint did not return True")
    _expect(await storage.delete("checkpoint-1") is False, "delete() of a deleted checkpoint did not return False")
    _expect(await storage.get_latest(workflow_name=WORKFLOW) is None, "a deleted checkpoint is still the latest")
    try:
        await storage.load("checkpoint-1")
    except Exception:
        return
    raise StorageContractError("load() of a deleted checkpoint raised nothing")


async def keeps_saves_made_at_once(storage: Any) -> None:
    """Two saves at the same time are both kept."""
    await asyncio.gather(storage.save(make_checkpoint(1)), storage.save(make_checkpoint(2)))
    ids = sorted(await storage.list_checkpoint_ids(workflow_name=WORKFLOW))
    _expect(ids == ["checkpoint-1", "checkpoint-2"], f"of two saves at once {ids} were kept")


async def is_whole_after_a_cancelled_save(storage: Any) -> None:
    """A cancelled save is there as a whole or not at all, and what was saved before is still there."""
    await storage.save(make_checkpoint(1))
    saving = asyncio.ensure_future(storage.save(make_checkpoint(2)))
    await asyncio.sleep(0)
    saving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await saving
    checkpoints = {item.checkpoint_id: item for item in await storage.list_checkpoints(workflow_name=WORKFLOW)}
    _expect("checkpoint-1" in checkpoints, "a cancelled save removed an earlier checkpoint")
    second = checkpoints.get("checkpoint-2")
    _expect(
        second is None or digest(second) == digest(make_checkpoint(2)), "a cancelled save left a checkpoint in parts"
    )
    await storage.save(make_checkpoint(3))
    latest = await storage.get_latest(workflow_name=WORKFLOW)
    _expect(_name(latest) == "checkpoint-3", f"after a cancelled save get_latest() returned {_name(latest)}")


_CHECKS: dict[Callable[[Any], Coroutine[Any, Any, None]], str] = {
    keeps_what_it_is_given: "what was saved is loaded, equal and independent",
    lists_and_finds_the_latest: "workflows are kept apart, and the latest is the latest",
    deletes: "what was deleted is gone",
    keeps_saves_made_at_once: "saves made at once are all kept",
    is_whole_after_a_cancelled_save: "a cancelled save is there as a whole or not at all",
}


def _expect(kept: bool, message: str) -> None:
    if not kept:
        raise StorageContractError(message)


def _name(checkpoint: Any) -> str:
    return "None" if checkpoint is None else str(getattr(checkpoint, "checkpoint_id", checkpoint))
