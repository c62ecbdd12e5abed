"""Runs and resumes of one graph inside one execution.

Owns ``durable``, the object that a scenario is written with; must not know schedulers or oracles.
"""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Collection
from typing import Any

import langgraph.graph  # noqa: F401  (loaded before a search freezes what it finds; a scenario imports it late)
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from harness.adapters.endings import Leave, note
from harness.adapters.langgraph.saver import INTERRUPT, SaverControl
from harness.adapters.references import note_references
from harness.adapters.runs import Run, Runs, at_the_end, quiet
from harness.adapters.saves import Saves, choose_shape
from harness.model.errors import UsageError
from harness.runtime.attempt import attempt
from harness.runtime.loop import ControlledLoop

DURABILITIES = ("sync", "async", "exit")


class Durable:
    """Runs graphs on the checkpointer of this execution, and resumes them as another process would."""

    def __init__(
        self, storage: Any, *, shapes: bool = True, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> None:
        """faults: of FAULTS; the search may then let them happen. notes: what the oracles need beyond the usual."""
        self.storage = storage
        self._notes = tuple(notes)
        saves = Saves(shape=choose_shape(shapes=shapes), faults="storage" in faults)
        self._control = SaverControl(saves, notes=notes)
        self._runs = Runs(consume=self._consume, faults=faults, forget=self._forget)
        self.saver: Any = None  # of the process that lives now
        checkpoint_ids._last_v6_timestamp = None  # of the execution before, whose clock was another one

    @property
    def runs(self) -> list[Run]:
        """The runs so far."""
        return self._runs.all

    async def run(self, graph: Any, message: Any, *, durability: str = "async", stream: bool = False) -> Run:
        """Run ``graph`` from the beginning on a thread of its own; however it ends is part of the returned Run.

        graph: a StateGraph, a function that builds one, or what ``@entrypoint`` made. stream: consume the
        run's events one by one.
        """
        if durability not in DURABILITIES:
            raise UsageError(f"unknown durability {durability!r} (known: {', '.join(DURABILITIES)})")
        await self._connect()
        number = len(self.runs)
        name, threads = _name(graph), len(self._control.threads)
        name = f"{name}#{threads + 1}" if threads else name
        self._control.threads[f"thread-{number}"] = name
        run = Run(number, name, graph, message, instance=self._build(graph))
        run.notes.update(
            input=message,
            config={"configurable": {"thread_id": f"thread-{number}"}},
            durability=durability,
            stream=stream,
        )
        return await self._runs.go(run)

    async def resume(self, run: Run, *, answer: Any = None, stream: bool = False) -> Run:
        """Resume ``run`` from the latest checkpoint of its thread on a fresh instance.

        Without any checkpoint, the graph is run from the beginning, as its caller would do. answer: to what the
        run asked. With the fault ``resume`` the search also chooses the checkpoint, the instance, and whether to
        wait until everything of the run is quiet.
        """
        chosen = await self._runs.before_resume(run)
        await self._connect()
        thread = {"thread_id": run.notes["config"]["configurable"]["thread_id"]}
        checkpoint = await self._checkpoint(thread, chosen.place, chosen.pick)
        config: dict[str, Any] = {"configurable": dict(thread)}
        if checkpoint is not None and chosen.place != "latest":
            config["configurable"]["checkpoint_id"] = checkpoint
        instances = chosen.instances(run, functools.partial(self._build, run.program))
        resumed = []
        for index, instance in enumerate(instances):
            again = Run(len(self.runs) + index, run.name, run.program, run.message, checkpoint, run, instance)
            again.from_latest, again.twin = chosen.place == "latest", len(instances) > 1
            again.notes.update(run.notes, config=config, stream=stream)
            again.notes["input"] = (
                run.message if checkpoint is None else None if answer is None else Command(resume=answer)
            )
            resumed.append(again)
        return await self._runs.go_all(resumed)

    async def quiet(self) -> None:
        """Wait until everything else has nothing left to do."""
        await quiet()

    async def finish(self) -> None:
        """Note what the oracles asked for when the program is over."""
        loop = await at_the_end(self._notes)
        if loop is None:
            return
        await self._connect()
        if {"storage", "contents"} & set(self._notes):
            await self._note_storage(loop)
        if "reference" in self._notes:
            runs = [run for run in self.runs if run.resumes is None]
            await note_references(loop, [(run.name, run.message, functools.partial(_result_of, run)) for run in runs])

    async def _note_storage(self, loop: ControlledLoop) -> None:
        """Note every checkpoint of the threads, and which one is the latest of each."""
        checkpoints: list[dict[str, Any]] = []
        latest: dict[str, str | None] = {}
        for thread, name in self._control.threads.items():
            config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            found = [self._control.facts(item) async for item in self.saver.alist(config)]
            checkpoints += found
            newest = await self.saver.aget_tuple(config)
            latest[name] = None if newest is None else newest.checkpoint["id"]
        loop.note("storage.state", "", run=attempt(), checkpoints=checkpoints, latest=latest)

    async def _connect(self) -> None:
        """Connect as a process does when it starts, unless the one that lives has."""
        if self.saver is not None:
            return
        connect = getattr(self.storage, "connect", None)
        self.saver = self._control.take(connect() if callable(connect) else self.storage)
        setup = getattr(self.saver, "setup", None)
        if callable(setup):
            # In default order: nothing else runs yet, so there is nothing to search.
            loop: Any = asyncio.get_running_loop()
            scheduler = getattr(loop, "scheduler", None)
            if scheduler is None:
                await setup()
                return
            loop.scheduler = None
            try:
                await setup()
            finally:
                loop.scheduler = scheduler

    async def _checkpoint(self, thread: dict[str, str], place: str, pick: Any) -> str | None:
        config = {"configurable": dict(thread)}
        if place == "latest":
            latest = await self.saver.aget_tuple(config)
            return None if latest is None else str(latest.checkpoint["id"])
        ids = [str(item.checkpoint["id"]) async for item in self.saver.alist(config)]
        found: str | None = pick(ids)
        return found

    async def _consume(self, run: Run, leave: Leave | None) -> None:
        notes = run.notes
        if notes["durability"] == "sync":
            self._control.synchronous.add(run.number)
        options = {"config": notes["config"], "durability": notes["durability"]}
        if not notes["stream"] and not self._runs.streams:
            result = await run.instance.ainvoke(notes["input"], **options)
            _finish(run, result)
            return
        stream = run.instance.astream(notes["input"], stream_mode=["updates", "values"], **options)
        result = None
        async for mode, event in stream:
            run.events.append(event)
            note("run.event", run, type=mode)
            result = event if mode == "values" else result
            _note_requests(run, event)
            if leave is not None and len(run.events) == leave.after:
                run.ending = leave.how
                break
        if run.ending == "closed":
            await stream.aclose()
        elif run.ending == "dropped":
            event = stream = None
            gc.collect()  # the finalizer of the generator runs now, not when the process feels like it
        else:
            _finish(run, result)

    def _build(self, graph: Any) -> Any:
        return _built(graph, self.saver)

    def _forget(self, _loop: ControlledLoop) -> None:
        """Lose what a process holds: its connection, and the lock that its checkpointer has in memory."""
        abandon = getattr(self.storage, "abandon", None)
        if callable(abandon):
            abandon()
            self.saver = None


def _finish(run: Run, result: Any) -> None:
    run.outputs = [result]
    _note_requests(run, result)


def _note_requests(run: Run, seen: Any) -> None:
    """Note what ``seen``, an event or a result, asks a human for the first time."""
    for item in seen.get(INTERRUPT, ()) if isinstance(seen, dict) else ():
        if item.id not in run.requests:
            run.requests.append(item.id)
            note("run.request", run, request=item.id)


async def _result_of(run: Run) -> tuple[list[Any], list[str]]:
    """Return what the message of ``run`` ends with on a new instance, in memory, and the ids of what it asks."""
    graph = _built(run.program, InMemorySaver())
    result = await graph.ainvoke(run.message, config={"configurable": {"thread_id": "reference"}})
    asked = result.get(INTERRUPT, ()) if isinstance(result, dict) else ()
    return [result], [item.id for item in asked]


def _built(graph: Any, saver: Any) -> Any:
    """Return an instance of ``graph`` on ``saver``; raises UsageError for what is none."""
    made: Any
    for made in (graph, graph() if callable(graph) and not hasattr(graph, "ainvoke") else None):
        if callable(getattr(made, "compile", None)):
            return made.compile(checkpointer=saver)
        if callable(getattr(made, "ainvoke", None)) and callable(getattr(made, "copy", None)):
            return made.copy({"checkpointer": saver})
    raise UsageError(f"{graph!r} is not a graph: pass a StateGraph, a function that builds one, or an @entrypoint")


def _name(graph: Any) -> str:
    return str(getattr(graph, "__name__", None) or getattr(graph, "name", None) or "graph")
