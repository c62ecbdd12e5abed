"""OpenAI Agents SDK: streamed runs of an agent that share a session.

Owns what the harness knows of the SDK: tool calls as steps, and the journal of a session; must not know searches.
A run that is "resumed" is the next one on its session: what the session holds is all that it knows.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage
from agents.memory import SQLiteSession
from openai.types.responses import Response, ResponseCompletedEvent, ResponseFunctionToolCall

from harness.adapters import plain_runs
from harness.adapters.endings import Leave, note
from harness.adapters.openai_agents_export import AgentCalls
from harness.adapters.owners import cancellations_noted
from harness.adapters.runs import Run, Runs
from harness.adapters.saves import Saves, choose_shape
from harness.model.outcome import Execution
from harness.model.registry import unknown
from harness.model.scenario import Scenario
from harness.report.export.layout import Draft, Tested
from harness.runtime.attempt import attempt
from harness.runtime.loop import ControlledLoop

FAULTS = ("cancel", "crash", "storage")
ROUND_TRIP_S = 0.05
Consumer = Callable[[Any], Awaitable[None]]


class MemorySession:
    """A session in memory, whose methods never yield."""

    def __init__(self) -> None:
        self.session_id = "session"
        self._items: list[Any] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, or the latest ``limit`` of them."""
        return list(self._items if limit is None else self._items[-limit:])

    async def add_items(self, items: list[Any]) -> None:
        """Append ``items``."""
        self._items.extend(items)

    async def pop_item(self) -> Any:
        """Remove and return the latest item, or None."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Forget everything."""
        self._items.clear()


class RemoteSession(MemorySession):
    """A session whose writes first wait for the network, as those of a database server do."""

    async def add_items(self, items: list[Any]) -> None:
        """Wait, then append ``items``."""
        await asyncio.sleep(ROUND_TRIP_S)
        await super().add_items(items)


_STORAGES: dict[str, Callable[[], Any]] = {
    "memory": MemorySession,
    "remote": RemoteSession,
    "sqlite": lambda: SQLiteSession("session"),
}


class OpenAIAgents:
    """What a search needs of a framework; one instance, ``PLUGIN``."""

    name = "openai-agents"

    def storages(self) -> tuple[str, ...]:
        """Return the names of the storages."""
        return tuple(_STORAGES)

    def fixes(self) -> tuple[str, ...]:
        """Return the names of the fix candidates: none."""
        return ()

    def make_storage(self, name: str, _directory: Path) -> Any:
        """Return a new, empty session; raises UsageError for an unknown name."""
        if name not in _STORAGES:
            raise unknown("storage", name=name, known=_STORAGES)
        return _STORAGES[name]()

    def fix(self, name: str) -> AbstractContextManager[None]:
        """Raise UsageError: there is no fix candidate."""
        raise unknown("fix", name=name, known=())

    def observe(self, notes: Collection[str] = ()) -> AbstractContextManager[None]:
        """Return a context manager that notes who cancels whom, if asked; tools and the session note themselves."""
        return cancellations_noted() if "cancellations" in notes else nullcontext()

    def refuses(self) -> dict[str, str]:
        """Return the oracles that cannot judge agents, with the reasons."""
        no_checkpoints = "a session is one list of items, and has no checkpoints"
        return {
            "decision-stable": "no code of the user sees what a tool returned or raised to the model",
            "guard-released": "one agent may run many times at once",
            "latest-is-maximal": no_checkpoints,
            "linear-lineage": no_checkpoints,
            "request-durable": "a run that waits for an approval keeps it in its result, not in the session",
            "restore-complete": "a run goes on from a session with another message",
            "run-isolation": "runs on one session are meant to know of each other",
            "snapshot-immutable": no_checkpoints,
        }

    def faults(self) -> tuple[str, ...]:
        """Return what may happen to a run when it is switched on."""
        return FAULTS

    def durable(
        self, storage: Any, *, shapes: bool, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> Durable:
        """Return what a program runs and resumes agents with."""
        return Durable(storage, shapes=shapes, faults=faults, notes=notes)

    def drafts(
        self,
        scenario: Scenario,
        setup: Mapping[str, str],
        execution: Execution,
        parked: Sequence[tuple[str, str]],
    ) -> Iterator[Draft]:
        """Yield a failing execution as the source of a plain program."""
        yield from plain_runs.drafts(AgentCalls(), scenario, setup, execution, parked)

    def test_drafts(self, tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]]) -> Iterator[Draft]:
        """Yield the same of a test that takes ``durable``."""
        yield from plain_runs.test_drafts(AgentCalls(), tested, execution, parked)


class Durable:
    """Runs agents on the session of this execution, and goes on with them there."""

    def __init__(
        self, storage: Any, *, shapes: bool = True, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> None:
        """faults: of FAULTS; the search may then let them happen. notes: what is noted is asked of ``observe``."""
        self.storage = storage
        self._saves = Saves(shape=choose_shape(shapes=shapes), faults="storage" in faults)
        self._runs = Runs(consume=self._consume, faults=faults)
        add_items = storage.add_items
        storage.add_items = lambda items: self._saves.save("save", lambda: add_items(items), {"items": len(items)})

    async def run(self, make_agent: Callable[[], Agent[Any]], message: str, *, consumer: Consumer | None = None) -> Run:
        """Run a new agent on ``message``, streamed; however it ends is part of the returned Run.

        consumer: called with each event of the stream, and awaited before the next one is taken.
        """
        run = Run(len(self._runs.all), make_agent.__name__, make_agent, message)
        run.notes["consumer"] = consumer
        return await self._runs.go(run)

    async def resume(self, run: Run, message: str, *, consumer: Consumer | None = None) -> Run:
        """Run a new agent on ``message``, on the session that ``run`` left."""
        resumed = Run(len(self._runs.all), run.name, run.program, message, resumes=run)
        resumed.notes["consumer"] = consumer
        return await self._runs.go(resumed)

    async def finish(self) -> None:
        """Note what the oracles asked for when the program is over: nothing, so far."""

    async def _consume(self, run: Run, _leave: Leave | None) -> None:
        agent = run.program()
        agent = agent.clone(tools=[_noted(tool) if isinstance(tool, FunctionTool) else tool for tool in agent.tools])
        config = RunConfig(tracing_disabled=True)
        streamed = Runner.run_streamed(agent, run.message, session=self.storage, run_config=config)
        async for event in streamed.stream_events():
            run.events.append(event)
            note("run.event", run, type=event.type)
            if run.notes["consumer"] is not None:
                await run.notes["consumer"](event)
        run.outputs = [streamed.final_output]


def _noted(tool: FunctionTool) -> FunctionTool:
    """Return ``tool``, which writes its calls to the journal."""
    invoke = tool.on_invoke_tool

    async def on_invoke_tool(context: Any, arguments: str) -> Any:
        call = f"{tool.name}({arguments})"
        _note_step("invoked", tool, call)
        try:
            value = await invoke(context, arguments)
        except Exception as error:
            _note_step("failed", tool, call, value=repr(error))
            raise
        _note_step("completed", tool, call, value=repr(value))
        return value

    return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)


def _note_step(kind: str, tool: FunctionTool, call: str, **data: Any) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, ControlledLoop):
        loop.note(f"step.{kind}", tool.name, run=attempt(), call=call, **data)


class ScriptedModel(Model):
    """A model that answers as a function of the conversation says.

    decide: gets the items of the conversation, and returns the arguments of a call of the tool ``tool``, or None to
    say nothing more.
    """

    def __init__(self, tool: str, decide: Callable[[list[Any]], str | None]) -> None:
        self._tool = tool
        self._decide = decide

    async def get_response(self, _instructions: Any, input: Any, *_args: Any, **_kwargs: Any) -> ModelResponse:
        """Return the whole answer."""
        return ModelResponse(output=self._answer(input), usage=Usage(), response_id="response")

    async def stream_response(self, _instructions: Any, input: Any, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Yield the whole answer as one event."""
        response = Response.model_construct(id="response", output=self._answer(input), usage=None)
        yield ResponseCompletedEvent.model_construct(type="response.completed", response=response, sequence_number=0)

    def _answer(self, conversation: Any) -> list[Any]:
        from openai.types.responses import ResponseOutputMessage, ResponseOutputText

        arguments = self._decide([] if isinstance(conversation, str) else list(conversation))
        if arguments is None:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])]
        return [
            ResponseFunctionToolCall(
                id="f", call_id="call", type="function_call", name=self._tool, arguments=arguments, status="completed"
            )
        ]


PLUGIN = OpenAIAgents()
