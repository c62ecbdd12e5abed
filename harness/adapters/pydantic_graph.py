"""pydantic-graph: graphs that stop after some nodes and go on from their state persistence.

Owns what the harness knows of pydantic-graph, and the journal of its snapshots; must not know searches. There is no
release with a bug that needs a fault or an await shape, so it offers none.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pydantic_graph import BaseNode, End
from pydantic_graph.persistence.in_mem import FullStatePersistence

from harness.adapters import plain_runs
from harness.adapters.endings import Leave, note
from harness.adapters.owners import cancellations_noted
from harness.adapters.pydantic_graph_export import GraphCalls
from harness.adapters.runs import Run, Runs
from harness.model.outcome import Execution
from harness.model.registry import unknown
from harness.model.scenario import Scenario
from harness.report.export.layout import Draft, Tested
from harness.runtime.attempt import attempt
from harness.runtime.loop import ControlledLoop

STORAGES = ("full-state",)


class PydanticGraph:
    """What a search needs of a framework; one instance, ``PLUGIN``."""

    name = "pydantic-graph"

    def storages(self) -> tuple[str, ...]:
        """Return the names of the storages."""
        return STORAGES

    def fixes(self) -> tuple[str, ...]:
        """Return the names of the fix candidates: none."""
        return ()

    def make_storage(self, name: str, _directory: Path) -> Any:
        """Return a new, empty persistence; raises UsageError for an unknown name."""
        if name not in STORAGES:
            raise unknown("storage", name=name, known=STORAGES)
        return FullStatePersistence()

    def fix(self, name: str) -> AbstractContextManager[None]:
        """Raise UsageError: there is no fix candidate."""
        raise unknown("fix", name=name, known=())

    def observe(self, notes: Collection[str] = ()) -> AbstractContextManager[None]:
        """Return a context manager that notes who cancels whom, if asked; the persistence notes itself."""
        return cancellations_noted() if "cancellations" in notes else nullcontext()

    def refuses(self) -> dict[str, str]:
        """Return the oracles that cannot judge these graphs, with the reasons."""
        one_list = "its persistence is one list of snapshots, which name no parent"
        its_end = "a run ends where its caller stops it, so there is no end to compare with"
        return {
            "decision-stable": "nothing but the graph itself sees what a node returned or raised",
            "guard-released": "one graph may run many times at once",
            "latest-is-maximal": one_list,
            "linear-lineage": one_list,
            "request-durable": "its graphs do not ask anybody",
            "restore-complete": its_end,
            "run-isolation": its_end,
        }

    def faults(self) -> tuple[str, ...]:
        """Return what may happen to a run: nothing."""
        return ()

    def durable(
        self, storage: Any, *, shapes: bool, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> Durable:
        """Return what a program runs and resumes graphs with."""
        return Durable(storage, notes=notes)

    def drafts(
        self,
        scenario: Scenario,
        setup: Mapping[str, str],
        execution: Execution,
        parked: Sequence[tuple[str, str]],
    ) -> Iterator[Draft]:
        """Yield a failing execution as the source of a plain program."""
        yield from plain_runs.drafts(GraphCalls(), scenario, setup, execution, parked)

    def test_drafts(self, tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]]) -> Iterator[Draft]:
        """Yield the same of a test that takes ``durable``."""
        yield from plain_runs.test_drafts(GraphCalls(), tested, execution, parked)


class Durable:
    """Runs graphs on the persistence of this execution, and resumes them from it."""

    def __init__(self, storage: Any, *, notes: Collection[str] = ()) -> None:
        """notes: ``contents`` for digests of what is saved and read."""
        self.storage = storage
        self._notes = tuple(notes)
        self._runs = Runs(consume=self._consume)
        _note_snapshots(storage)

    async def run(self, graph: Any, start: BaseNode[Any, Any, Any], *, state: Any, steps: int) -> Run:
        """Run ``graph`` from the node ``start``, and stop after ``steps`` nodes."""
        run = Run(len(self._runs.all), str(graph.name or "graph"), graph, start)
        run.notes.update(steps=steps, state=state)
        return await self._runs.go(run)

    async def resume(self, run: Run, *, steps: int) -> Run:
        """Go on where ``run`` stopped, from the persistence, for ``steps`` nodes."""
        resumed = Run(len(self._runs.all), run.name, run.program, run.message, resumes=run)
        resumed.notes.update(steps=steps)
        return await self._runs.go(resumed)

    async def finish(self) -> None:
        """Note what the persistence holds when the program is over."""
        loop = asyncio.get_running_loop()
        if "contents" not in self._notes or not isinstance(loop, ControlledLoop):
            return
        found = [{"checkpoint": item.id, "digest": _digest(item)} for item in await self.storage.load_all()]
        loop.note("storage.state", "", run=attempt(), checkpoints=found, latest={})

    async def _consume(self, run: Run, _leave: Leave | None) -> None:
        graph = run.program
        if run.resumes is None:
            opened = graph.iter(run.message, state=run.notes["state"], persistence=self.storage)
        else:
            opened = graph.iter_from_persistence(self.storage)
        async with opened as running:
            for _ in range(run.notes["steps"]):
                reached = await running.next()
                note("run.event", run, type=type(reached).__name__)
                if isinstance(reached, End):
                    run.outputs = [reached.data]
                    break


def _note_snapshots(storage: Any) -> None:
    """Let ``storage`` write to the journal: each snapshot that it takes and loads, each node that it records.

    Its methods are replaced on the instance; pydantic-graph calls no others (1.0.10).
    """
    take_node, take_end = storage.snapshot_node, storage.snapshot_end
    load_next, record_run = storage.load_next, storage.record_run

    async def snapshot_node(state: Any, next_node: Any) -> None:
        passed = _crc(state, next_node)
        await take_node(state, next_node)
        _note("save.called", storage, len(storage.history) - 1, digest=passed)

    async def snapshot_end(state: Any, end: Any) -> None:
        passed = _crc(state, end)
        await take_end(state, end)
        _note("save.called", storage, len(storage.history) - 1, digest=passed)

    async def noted_load_next() -> Any:
        found = await load_next()
        if found is not None:
            place = next(index for index, item in enumerate(storage.history) if item.id == found.id)
            _note("storage.loaded", storage, place, digest=_digest(found))
        return found

    @contextlib.asynccontextmanager
    async def noted_record_run(snapshot_id: str) -> AsyncIterator[None]:
        stored = next(item for item in storage.history if item.id == snapshot_id)
        call = f"{stored.node!r} on {stored.state!r}"
        loop = asyncio.get_running_loop()
        noted = isinstance(loop, ControlledLoop)
        if noted:
            loop.note("step.invoked", stored.node.get_node_id(), run=attempt(), call=call)  # type: ignore[attr-defined]
        async with record_run(snapshot_id):
            yield
        if noted:
            loop.note("step.completed", stored.node.get_node_id(), run=attempt(), call=call)  # type: ignore[attr-defined]

    storage.snapshot_node, storage.snapshot_end = snapshot_node, snapshot_end
    storage.load_next, storage.record_run = noted_load_next, noted_record_run
    # The types serve its JSON only, and pydantic knows no schema of the datetime class of a frozen clock.
    storage.should_set_types = lambda: False


def _note(kind: str, storage: Any, place: int, *, digest: str) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        checkpoint = storage.history[place].id
        loop.note(kind, f"snapshot#{place + 1}", run=attempt(), checkpoint=checkpoint, digest=digest)


def _digest(snapshot: Any) -> str:
    """Return the digest of what a snapshot was taken of; its status and its times are the persistence's own."""
    held = snapshot.node if hasattr(snapshot, "node") else snapshot.result
    return _crc(snapshot.state, held)


def _crc(state: Any, held: Any) -> str:
    return f"{zlib.crc32(f'{state!r} {held!r}'.encode()):08x}"


PLUGIN = PydanticGraph()
