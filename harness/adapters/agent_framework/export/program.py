"""The statements of a scenario, as calls of the framework.

Owns how a run, its resume and its ending are written down; must not know what is judged.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.adapters.agent_framework.export.storages import PlainStorage
from harness.model.outcome import Event, Execution
from harness.model.scenario import Scenario
from harness.report.export.gates import CANCEL
from harness.report.export.source import ExportError, Source


@dataclass(slots=True)
class Program:
    """The statements of a scenario, one by one, as calls of the framework."""

    scenario: Scenario
    source: Source
    execution: Execution
    storage: PlainStorage
    roots: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    script: list[str] = field(default_factory=list)
    workflows: list[str] = field(default_factory=list)  # names in the storage
    _runs: dict[str, int] = field(default_factory=dict)
    _calls: list[tuple[str, str]] = field(default_factory=list)
    _count: int = 0

    def translate(self) -> None:
        """Fill ``body`` and ``script``; raises ExportError for a statement without a plain form."""
        function = self.source.definitions.get(self.scenario.program.__name__)
        if not isinstance(function, ast.AsyncFunctionDef):
            raise ExportError("the scenario's function was not found in its file")
        shared = {
            node.value.id
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and node.attr == "instance" and isinstance(node.value, ast.Name)
        }
        durable = function.args.args[0].arg
        for statement in function.body:
            value = getattr(statement, "value", None)
            if isinstance(value, ast.Constant):
                continue
            call = value.value if isinstance(value, ast.Await) else None
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            name = target.id if isinstance(target, ast.Name) else ""
            method = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
            if not (
                isinstance(call, ast.Call)
                and self.source.text(call.func) == f"{durable}.{method}"
                and isinstance(statement, ast.Assign | ast.Expr)
                and method in ("run", "resume", "quiet")
            ):
                raise ExportError(f"line {statement.lineno} of the scenario has no plain form")
            if method == "quiet":
                self._add(["await finish(asyncio.sleep(0))"])
            elif method == "run":
                self._run(call, name, shared=name in shared)
            else:
                self._resume(call, name)

    def _run(self, call: ast.Call, name: str, *, shared: bool) -> None:
        given = {str(keyword.arg): keyword.value for keyword in call.keywords}
        if set(given) - {"instance"}:
            raise ExportError(f"line {call.lineno}: {', '.join(sorted(given))} has no plain form")
        workflow, message = call.args[0], self.source.text(call.args[1])
        if not isinstance(workflow, ast.Name):
            raise ExportError(f"line {call.lineno}: the workflow has no name")
        self.roots.append(workflow.id)
        made = self._build(workflow.id)
        self._begin()
        if "instance" in given:
            made = "instance"
        elif shared:
            self._add([f"instance = {made}"])
            made = "instance"
        self._calls.append((workflow.id, message))
        self._runs[name] = len(self._calls) - 1
        self._end(f"{made}.run({message}, checkpoint_storage=storage)")

    def _resume(self, call: ast.Call, name: str) -> None:
        if call.keywords or not isinstance(call.args[0], ast.Name):
            raise ExportError(f"line {call.lineno}: this resume has no plain form")
        workflow, message = self._calls[self._runs[call.args[0].id]]
        stored = self._event("run.started").subject
        read = f'storage.get_latest(workflow_name="{stored}")'
        self._begin()
        self._add(
            [
                f"latest = await {f'finish({read})' if self.storage.reads else read}",
                f'start = {{"message": {message}}} if latest is None else {{"checkpoint_id": latest.checkpoint_id}}',
            ]
        )
        self.script.append("print('checkpoint to resume from:', 'none' if latest is None else latest.checkpoint_id)")
        self._calls.append((workflow, message))
        self._runs[name] = len(self._calls) - 1
        self._end(f"{self._build(workflow)}.run(checkpoint_storage=storage, **start)")

    def _build(self, workflow: str) -> str:
        value = vars(inspect.getmodule(self.scenario.program)).get(workflow)
        return f"{workflow}.build()" if callable(getattr(value, "build", None)) else f"{workflow}()"

    def _begin(self) -> None:
        if self._count:
            self._add([f"attempt = {self._count}"])

    def _end(self, call: str) -> None:
        """Add the call of a run, and how it ended in the failing execution."""
        ended = self._event("run.ended").data
        stored = self._event("run.started").subject
        if stored not in self.workflows:
            self.workflows.append(stored)
        last = all(event.run <= self._count for event in self.execution.journal if event.kind == "run.started")
        number, self._count = self._count, self._count + 1
        how = str(ended.get("how"))
        gate = f'asyncio.ensure_future(gate("{CANCEL}"))'
        if how == "timed out":
            within = ["async def in_time():", "    async with asyncio.timeout(None) as deadline:"]
            within.append(f"        {gate}.add_done_callback(lambda _: deadline.reschedule(0))")
            self._add([*within, f"        return await {call}"])
            self._fails(number, "in_time()", "TimeoutError", "")
        elif how == "cancelled":
            self._add([f"run = asyncio.ensure_future({call})", f"{gate}.add_done_callback(lambda _: run.cancel())"])
            self._fails(number, "run", "asyncio.CancelledError", "")
        elif how == "failed":
            kind, match = _error(str(ended.get("error")))
            if last:
                self._add(["with contextlib.suppress(Exception):", f"    await finish({call})"])
            else:
                self._fails(number, call, kind, match)
        elif how == "returned":
            self.body.append(f"await finish({call})")
            self.script += [f"result = await finish({call})", f"print('run {number} returned', result.get_outputs())"]
        else:
            raise ExportError(f"a run that ends {how!r} has no plain form")

    def _fails(self, number: int, call: str, kind: str, match: str) -> None:
        self.body += [f"with pytest.raises({kind}{match}):", f"    await finish({call})"]
        self.script += [
            "try:",
            f"    await finish({call})",
            f"except {kind} as error:",
            f"    print('run {number} ended with', repr(error))",
        ]

    def _add(self, lines: Sequence[str]) -> None:
        self.body += lines
        self.script += lines

    def _event(self, kind: str) -> Event:
        found = [event for event in self.execution.journal if event.kind == kind and event.run == self._count]
        if not found:
            raise ExportError(f"run {self._count} of the failing execution has no plain form")
        return found[0]


def _error(text: str) -> tuple[str, str]:
    """Return the class of an error's repr, and what ``pytest.raises`` should match."""
    name, _, rest = text.partition("(")
    if name == "StorageFault":
        return "RuntimeError", ', match="connection lost"'
    if not hasattr(builtins, name):
        return "Exception", ""
    try:
        message = ast.literal_eval(rest.removesuffix(")"))
    except (SyntaxError, ValueError):
        return name, ""
    plain = isinstance(message, str) and re.fullmatch(r"[\w ,:-]+", message)
    return name, f', match="{message}"' if plain else ""
