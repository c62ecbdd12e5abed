"""The statements of a program, as calls of the framework.

Owns how a run, its resume and what is asked of it are written down; must not know what is judged.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.adapters.agent_framework.export.endings import Ending, Lines, write_ending
from harness.adapters.agent_framework.export.storages import PlainStorage
from harness.adapters.agent_framework.releases import FunctionalWorkflow
from harness.model.outcome import Event, Execution
from harness.report.export.gates import QUIET
from harness.report.export.plain import Plain
from harness.report.export.source import ExportError, Source, is_docstring

_METHODS = ("run", "resume", "quiet")


@dataclass(frozen=True, slots=True)
class Around:
    """What an assertion needs of the runs, by their number.

    before, after: statements. results: names for what runs return. refused: what is said when a run raises, which
    is the failure to be shown. runs: how many are needed; the statements behind them are left out.
    """

    before: Mapping[int, Sequence[str]] = field(default_factory=dict)
    after: Mapping[int, Sequence[str]] = field(default_factory=dict)
    results: Mapping[int, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    runs: int = 1_000


@dataclass(slots=True)
class _Run:
    """A run as it is written down. workflow, message: source. name: of the variable that the program gave it."""

    number: int
    workflow: ast.expr
    message: str
    name: str
    ending: Ending


@dataclass(slots=True)
class Program:
    """The statements of one function, one by one. variable: its argument that runs workflows."""

    function: ast.AsyncFunctionDef
    variable: str
    namespace: Mapping[str, Any]
    source: Source
    execution: Execution
    storage: PlainStorage
    around: Around = field(default_factory=Around)
    choices: Mapping[str, str] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    lines: Lines = field(default_factory=Lines)
    nodes: list[ast.AST] = field(default_factory=list)
    quiets: int = 0  # how often it waits until all is quiet
    _runs: list[_Run] = field(default_factory=list)
    _instances: dict[str, str] = field(default_factory=dict)

    def translate(self) -> None:
        """Fill ``lines``; raises ExportError for a statement without a plain form."""
        kept = [node for node in self.function.body if not is_docstring(node)]
        self._share(kept)
        begun = sum(event.kind == "run.started" for event in self.execution.journal)
        for statement in kept:
            if len(self._runs) >= min(self.around.runs, begun) and self._method(statement) in ("run", "resume"):
                break  # what comes later decides nothing
            if len(self._runs) >= self.around.runs:
                break
            if statement is not kept[0]:
                gap = self.source.gap(kept[kept.index(statement) - 1], statement)
                self.lines.add(*gap.splitlines())
            self._translate(statement)

    def workflow_name(self, number: int = 0) -> str:
        """Return the name of a run's workflow in the storage."""
        return self._event("run.started", number).subject

    def build(self, number: int) -> str:
        """Return the expression of a new instance of the workflow of a run."""
        return self._build(self._runs[number].workflow)

    def message(self, number: int) -> str:
        """Return the source of the message of a run."""
        return self._runs[number].message

    def ending(self, number: int) -> Ending:
        """Return how a run ended."""
        return self._ending(number)

    # -- statements ------------------------------------------------------------------------------------

    def _share(self, statements: Sequence[ast.stmt]) -> None:
        """Note which runs another statement asks for their instance."""
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Attribute) and node.attr == "instance" and isinstance(node.value, ast.Name):
                    first = not self._instances
                    self._instances.setdefault(node.value.id, "instance" if first else f"{node.value.id}_instance")

    def _call(self, statement: ast.stmt) -> ast.Call | None:
        value = getattr(statement, "value", None)
        call = value.value if isinstance(value, ast.Await) else None
        if not isinstance(call, ast.Call) or not isinstance(statement, ast.Assign | ast.Expr):
            return None
        return call if self.source.text(call.func).startswith(f"{self.variable}.") else None

    def _method(self, statement: ast.stmt) -> str:
        call = self._call(statement)
        return call.func.attr if call is not None and isinstance(call.func, ast.Attribute) else ""

    def _translate(self, statement: ast.stmt) -> None:
        call, method = self._call(statement), self._method(statement)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        name = target.id if isinstance(target, ast.Name) else ""
        if call is None or method not in _METHODS:
            self._keep(statement)
        elif method == "quiet":
            self._rest()
        elif method == "run":
            self._run(call, name)
        else:
            self._resume(call, name)

    def _keep(self, statement: ast.stmt) -> None:
        """Keep a statement of the program's own, with what it asks of runs."""
        asked = [node for node in ast.walk(statement) if isinstance(node, ast.Attribute)]
        known = [node.value for node in asked if node.attr == "storage" and isinstance(node.value, ast.Name)]
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == self.variable]
        if any(node not in known for node in names):
            raise ExportError(f"line {statement.lineno} of the program has no plain form")
        plain = Plain(self.source, choices=self.choices, instead=self._of_run)
        text = plain.statement(statement, self.function.name)
        self.nodes.append(statement)
        self.lines.add(*text.split("\n"))

    def _of_run(self, node: ast.expr) -> str | None:
        """Return what an attribute of a run is in the exported file; raises ExportError for one without a form."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return None
        if node.value.id == self.variable:
            return "storage"
        run = next((item for item in reversed(self._runs) if item.name == node.value.id), None)
        if run is None:
            return None
        if node.attr == "instance":
            return self._instances[run.name]
        if node.attr == "outputs":
            return outputs_of(run.name, run.ending)
        if node.attr == "requests":
            return repr(self._requests(run.number))
        if node.attr == "ending" and run.ending.how:
            return repr(run.ending.how).replace("'", '"')
        if node.attr == "error" and run.ending.how == "returned":
            return "None"
        raise ExportError(f"{self.source.text(node)} (line {node.lineno}) has no plain form")

    # -- runs ------------------------------------------------------------------------------------------

    def _run(self, call: ast.Call, name: str) -> None:
        given = {str(keyword.arg): keyword.value for keyword in call.keywords}
        if set(given) - {"instance", "stream"} or len(call.args) != 2:
            raise ExportError(f"line {call.lineno}: {', '.join(sorted(given)) or 'this run'} has no plain form")
        workflow = call.args[0]
        message = Plain(self.source, instead=self._of_run).expression(call.args[1])
        self.nodes += [workflow, call.args[1]]
        made = self._build(workflow)
        if "instance" in given:
            made = self.source.text(given["instance"])
            made = self._instances.get(made.removesuffix(".instance"), made)
        elif name in self._instances:
            self.lines.add(f"{self._instances[name]} = {made}")
            made = self._instances[name]
        elif self._reused(len(self._runs)):
            self._instances[name or "first"] = "instance"
            self.lines.add(f"instance = {made}")
            made = "instance"
        self._go(_Run(len(self._runs), workflow, message, name, self._ending(len(self._runs))), made, f"{message}, ")

    def _rest(self) -> None:
        self.quiets += 1
        self.lines.add(f'await finish(gate("{QUIET}"))')

    def _reused(self, number: int) -> bool:
        """Return whether a later run was resumed on the instance of this one, by choice of the search."""
        own = self._event("run.started", number).data.get("instance")
        later = (event for event in self.execution.journal if event.kind == "run.started" and event.run > number)
        return any(event.data.get("instance") == own for event in later)

    def _resume(self, call: ast.Call, name: str) -> None:
        given = {str(keyword.arg): keyword.value for keyword in call.keywords}
        if set(given) - {"responses", "stream"} or not isinstance(call.args[0], ast.Name):
            raise ExportError(f"line {call.lineno}: this resume has no plain form")
        resumed = next((run for run in reversed(self._runs) if run.name == call.args[0].id), None)
        if resumed is None:
            raise ExportError(f"line {call.lineno}: the run that it resumes has no plain form")
        number = len(self._runs)
        begun = self._event("run.started", number)
        if self._chosen(f"resume of run {resumed.number}") == "when quiet":
            self._rest()
        self.lines.add(*self._found(begun, self._chosen(f"checkpoint of run {resumed.number}"), resumed.message))
        start = "**start"
        if begun.data.get("answers"):
            start += f", responses={self._responses(given['responses'])}"
        where = self._chosen(f"instance of run {resumed.number}")
        made = self._build(resumed.workflow)
        if where == "same instance":
            made = self._instances.get(resumed.name or "first", "instance")
        run = _Run(number, resumed.workflow, resumed.message, name, self._ending(number))
        if where == "two instances":
            self._twins(run, made, start)
            return
        self._go(run, made, start, after_storage=True)

    def _found(self, begun: Event, place: str, message: str) -> list[str]:
        """Return the statements that find the checkpoint to resume from."""
        name = f'workflow_name="{begun.subject}"'
        position = {"second latest": "[:2][-1]", "third latest": "[:3][-1]", "first": "[-1]"}.get(place)
        if position is None:
            read = f"storage.get_latest({name})"
            read = f"finish({read})" if self.storage.reads else read
            return [
                f"latest = await {read}",
                f'start = {{"message": {message}}} if latest is None else {{"checkpoint_id": latest.checkpoint_id}}',
            ]
        return [
            f"checkpoints = await storage.list_checkpoints({name})",
            "checkpoints.sort(key=lambda checkpoint: checkpoint.timestamp, reverse=True)",
            f'start = {{"checkpoint_id": checkpoints{position}.checkpoint_id}}  # the {place}',
        ]

    def _twins(self, run: _Run, made: str, start: str) -> None:
        """Resume on two instances at once."""
        other = self._ending(run.number + 1)
        if (run.ending.how, other.how) != ("returned", "returned"):
            raise ExportError("two instances of which one does not return have no plain form")
        self._begin(run.number + 1)
        one = f"{made}.run(checkpoint_storage=storage, {start})"
        self.lines.add(f"await finish(asyncio.gather({one}, {one}))")
        self._runs += [run, _Run(run.number + 1, run.workflow, run.message, "", other)]

    def _responses(self, node: ast.expr) -> str:
        if isinstance(node, ast.IfExp):
            node = node.body  # it was answered
        self.nodes.append(node)
        return Plain(self.source, instead=self._of_run).expression(node)

    def _go(self, run: _Run, made: str, start: str, *, after_storage: bool = False) -> None:
        number = run.number
        self._begin(number)
        self.lines.add(*self.around.before.get(number, ()))
        given = f"checkpoint_storage=storage, {start}" if after_storage else f"{start}checkpoint_storage=storage"
        result = self.around.results.get(number, "")
        if not result and run.ending.how == "returned" and self._asked(run.name, "outputs"):
            result = run.name
        write_ending(
            self.lines,
            run.ending,
            f"{made}.run({given})",
            result=result,
            refused=self.around.refused.get(number, ""),
        )
        self._runs.append(run)
        self.lines.add(*self.around.after.get(number, ()))

    def _asked(self, name: str, attribute: str) -> bool:
        """Return whether the program asks a run for this attribute."""
        return any(
            isinstance(node, ast.Attribute)
            and node.attr == attribute
            and isinstance(node.value, ast.Name)
            and node.value.id == name
            for node in ast.walk(self.function)
        )

    def _begin(self, number: int) -> None:
        if number:
            self.lines.add(f"attempt = {number}")

    def _build(self, workflow: ast.expr) -> str:
        """Return the expression of a new instance; raises ExportError for a workflow that is made in another way."""
        text = Plain(self.source, instead=self._of_run).expression(workflow)
        if isinstance(workflow, ast.Call) and self.source.full_name(workflow.func) == "functools.partial":
            first, *others = (self.source.text(item) for item in workflow.args)
            return f"{first}({', '.join([*others, *(self.source.text(item) for item in workflow.keywords)])})"
        value = self.namespace.get(text)
        if callable(getattr(value, "build", None)):
            return f"{text}.build()"
        if isinstance(value, FunctionalWorkflow):  # before 1.14
            return f'FunctionalWorkflow({text}._func, name="{value.name}")'
        local = (node for node in self.function.body if isinstance(node, ast.AsyncFunctionDef) and node.name == text)
        if any(node.decorator_list for node in local):
            return f"{text}.build()"
        if not isinstance(workflow, ast.Name):
            raise ExportError(f"line {workflow.lineno}: the workflow has no name")
        return text if value is not None and not inspect.isfunction(value) else f"{text}()"

    # -- the execution ---------------------------------------------------------------------------------

    def _ending(self, number: int) -> Ending:
        journal = self.execution.journal
        ended = [event.data for event in journal if event.kind == "run.ended" and event.run == number]
        data = ended[0] if ended else {}
        how = str(data.get("how") or "")
        chosen = self._chosen(f"stream of run {number}")
        streamed = any(event.kind == "run.event" and event.run == number for event in journal) or bool(chosen)
        cancels = sum(event.kind == "run.cancelled" and event.run == number for event in journal)
        if cancels and self._chosen(f"run {number}").startswith("cancelled twice"):
            cancels = 2
        last = not any(event.kind == "run.started" and event.run > number for event in journal)
        left = int(chosen.rpartition(" ")[2]) if chosen else 0
        error = "" if data.get("error") is None else str(data["error"])
        late = any(event.kind == "run.timeout" and event.run == number for event in journal)
        return Ending(number, how, error, cancels, late, left if streamed else None, last)

    def _chosen(self, subject: str) -> str:
        """Return what the search chose for ``subject``, or "" for the default."""
        for decision in self.execution.schedule.decisions:
            about, _, option = decision.option.rpartition(": ")
            if decision.kind == "fault" and about == subject:
                return option
        return ""

    def _requests(self, number: int) -> list[str]:
        journal = self.execution.journal
        return [event.data["request"] for event in journal if event.kind == "run.request" and event.run == number]

    def _event(self, kind: str, number: int) -> Event:
        found = [event for event in self.execution.journal if event.kind == kind and event.run == number]
        if not found:
            raise ExportError(f"run {number} of the failing execution has no plain form")
        return found[0]


def outputs_of(name: str, ending: Ending) -> str:
    """Return the expression of what a run put out, of which ``name`` is the result; raises ExportError."""
    if ending.how != "returned":
        if ending.left:
            raise ExportError("what a stream put out before it was left has no plain form")
        return "[]"
    return (
        f"{name}.get_outputs()" if ending.left is None else f'[item.data for item in {name} if item.type == "output"]'
    )
