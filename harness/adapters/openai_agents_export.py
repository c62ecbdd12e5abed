"""The OpenAI Agents SDK in an exported file: how its agents are run, and a session.

Owns the text of the calls; must not know the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.adapters.plain_runs import Assertion, Imports
from harness.adapters.plain_statements import Call
from harness.model.outcome import Execution, Violation
from harness.report.export.plain import Plain
from harness.report.export.source import ExportError, Source, names_in

_MODEL = "ScriptedModel"
_SOURCE = Source((Path(__file__).parent / "openai_agents.py").read_text(encoding="utf-8"))
_USED = {*names_in(_SOURCE.definitions[_MODEL]), "RunConfig", "Runner"}
_CONSUME = """async def consume(agent, message, session{parameter}):
    config = RunConfig(tracing_disabled=True)
    streamed = Runner.run_streamed(agent, message, session=session, run_config=config)
    async for {event} in streamed.stream_events():
        {body}"""
_COUNT = "\n    begun = 0\n"
_SESSION = """class Session:  # {doc}{begun}
    def __init__(self):
        self.session_id, self.items = "session", []

    async def get_items(self, limit=None):
        return self.items[-limit:] if limit else list(self.items)

    async def add_items(self, items):{waits}
        self.items.extend(items)

    async def pop_item(self):
        return self.items.pop() if self.items else None

    async def clear_session(self):
        self.items.clear()"""


class AgentCalls:
    """How the SDK is called."""

    name = "openai-agents"
    imports: Imports = tuple(item for item in _SOURCE.imports() if item[2] in _USED)

    def helpers(self, borrowed: Sequence[str], calls: Sequence[Call]) -> tuple[str, ...]:
        """Return what consumes a stream, and the scripted model where the program uses it."""
        if wrong := [name for name in borrowed if name != _MODEL]:
            raise ExportError(f"{wrong[0]!r} of the harness has no plain form")
        consumers = ["consumer" in call.named for call in calls]
        if all(consumers):
            parameter, event, body = ", consumer", "event", "await consumer(event)"
        elif any(consumers):
            parameter, event, body = ", consumer=None", "event", _MAYBE
        else:
            parameter, event, body = "", "_", "pass"
        consume = _CONSUME.format(parameter=parameter, event=event, body=body)
        return (*([Plain(_SOURCE, docstrings=False).definition(_MODEL)] if borrowed else []), consume)

    def storage(self, name: str, *, gated: bool, counts: bool) -> tuple[str, str]:
        """Return a session in memory, whose writes wait where those of the finding did."""
        if name not in ("memory", "remote"):
            raise ExportError(f"the storage {name!r} works on a thread, which no gate can hold")
        doc = "its writes wait for the network first" if gated else "in memory"
        waits = [*(["self.begun += 1"] if counts else []), *(['await gate("save")'] if gated else [])]
        waits = [f"\n        {line}" for line in waits]
        return "Session()", _SESSION.format(doc=doc, begun=_COUNT if counts else "", waits="".join(waits))

    def setup(self) -> tuple[str, ...]:
        """Return nothing: an agent needs no more than its session."""
        return ()

    def call(self, call: Call) -> tuple[tuple[str, ...], str]:
        """Return a run of a new agent on the session; what goes on is a run with another message."""
        first = call if call.first is None else call.first
        message = call.arguments[-1]
        consumer = f", {call.named['consumer']}" if "consumer" in call.named else ""
        return (), f"consume({first.arguments[0]}(), {message}, storage{consumer})"

    def assertion(self, violation: Violation, execution: Execution) -> Assertion | None:
        """Return None: there is none but the usual ones."""
        return None


_MAYBE = """if consumer is not None:
            await consumer(event)"""
