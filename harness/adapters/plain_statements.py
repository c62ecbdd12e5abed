"""The statements of a program that runs agents or graphs, as calls of its framework.

Owns which statements stay and how a run is seen to end; must not know how a framework is called, nor what is judged.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.model.outcome import Execution
from harness.report.export.gates import CANCEL
from harness.report.export.layout import Tested
from harness.report.export.plain import Plain
from harness.report.export.source import ExportError, is_docstring, names_in

CRASH = "crash"
# Names of the exported file, for ``Calls``.
STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``durable.run`` or ``durable.resume``, as source. first: of the run that a resume goes on from."""

    arguments: tuple[str, ...]
    named: Mapping[str, str]
    first: Call | None = None


class Framework(Protocol):
    """What is asked of a framework here."""

    def call(self, call: Call) -> tuple[tuple[str, ...], str]:
        """Return statements, and the expression that awaits a run."""
        ...


@dataclass(slots=True)
class Statements:
    """The statements of the function, one by one.

    waits: its storage does. lines: as they are written down. nodes: what needs definitions.
    """

    framework: Framework
    tested: Tested
    execution: Execution
    waits: bool
    lines: list[str] = field(default_factory=list)
    nodes: list[ast.AST] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    _names: dict[str, Call] = field(default_factory=dict)

    def translate(self) -> None:
        """Fill the lists; raises ExportError for a statement without a plain form."""
        begun = sum(event.kind == "run.started" for event in self.execution.journal)
        for statement in self.tested.function.body:
            if is_docstring(statement):
                continue
            call = self._call(statement)
            if len(self.calls) == begun:
                return  # what comes later decides nothing
            if call is None:
                self._keep(statement)
            else:
                self._go(call, statement)

    def _call(self, statement: ast.stmt) -> ast.Call | None:
        value = getattr(statement, "value", None)
        call = value.value if isinstance(value, ast.Await) else None
        if not isinstance(call, ast.Call) or not isinstance(statement, ast.Assign | ast.Expr):
            return None
        return call if self.tested.source.text(call.func).startswith(f"{self.tested.variable}.") else None

    def _keep(self, statement: ast.stmt) -> None:
        asked = names_in(statement) & {self.tested.variable, *self._names}
        if asked and isinstance(statement, ast.Assert):
            return  # it held in the failing execution, and is no part of what is judged
        if asked:
            raise ExportError(f"line {statement.lineno} of the program has no plain form")
        self.nodes.append(statement)
        self.lines += Plain(self.tested.source).statement(statement, self.tested.function.name).split("\n")

    def _go(self, call: ast.Call, statement: ast.stmt) -> None:
        method = self.tested.source.text(call.func).partition(".")[2]
        if method not in ("run", "resume") or any(keyword.arg is None for keyword in call.keywords):
            raise ExportError(f"line {call.lineno} of the program has no plain form")
        plain = Plain(self.tested.source)
        arguments = list(call.args)
        first: Call | None = None
        if method == "resume":
            first = self._names.get(self.tested.source.text(arguments.pop(0)))
            if first is None:
                raise ExportError(f"line {call.lineno}: the run that it resumes has no plain form")
        named = {str(keyword.arg): plain.expression(keyword.value) for keyword in call.keywords}
        made = Call(tuple(plain.expression(item) for item in arguments), named, first)
        self.nodes += [*arguments, *(keyword.value for keyword in call.keywords)]
        number = len(self.calls)
        self.calls.append(made)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._names[statement.targets[0].id] = made
        before, awaited = self.framework.call(made)
        self.lines += [*([f"attempt = {number}"] if number else []), *before, *self._ending(number, awaited)]

    def _ending(self, number: int, awaited: str) -> list[str]:
        """Return the statements that await run ``number`` and see it end as it did."""
        return _ending(self.execution, number, awaited, waits=self.waits)


def crashed_in(execution: Execution) -> list[str]:
    """Return the runs that crashed."""
    ended = (event for event in execution.journal if event.kind == "run.ended")
    return [f"run {event.run}" for event in ended if event.data.get("how") == "crashed"]


def _begun(execution: Execution, number: int) -> int:
    """Return how many saves had begun when run ``number`` crashed."""
    kinds = [event.kind if event.run <= number else "" for event in execution.journal]
    return kinds[: kinds.index("run.ended")].count("save.snapshot") if "run.ended" in kinds else 0


def _ending(execution: Execution, number: int, awaited: str, *, waits: bool) -> list[str]:
    """Return the statements that await run ``number`` and see it end as it did.

    A process dies when its last save began, whatever was written by then: a framework that writes in another order
    after a fix is to pass.
    """
    ended = [event for event in execution.journal if event.kind == "run.ended" and event.run == number]
    how = str(ended[0].data.get("how")) if ended else ""
    if how == "crashed":
        count = _begun(execution, number) if waits else 0
        at = f"begun({STORAGE}, {count})" if count else f'gate("{CRASH}")'
        return [
            f"run = asyncio.ensure_future({awaited})",
            f"await finish({at})",
            f"{STORAGE} = copy.deepcopy({STORAGE})  # the process dies: what was written stays, and nothing else",
            "run.cancel()",
        ]
    cancelled = any(event.kind == "run.cancelled" and event.run == number for event in execution.journal)
    lines: list[str] = []
    if cancelled:
        cancel = f'asyncio.ensure_future(gate("{CANCEL}")).add_done_callback(lambda _: run.cancel())'
        lines, awaited = [f"run = asyncio.ensure_future({awaited})", cancel], "run"
    if how in ("returned", ""):
        return [*lines, f"await finish({awaited})"]
    if how not in ("cancelled", "failed"):
        raise ExportError(f"a run that ends {how!r} has no plain form")
    kind = "asyncio.CancelledError" if how == "cancelled" else "Exception"
    return [*lines, f"with contextlib.suppress({kind}):", f"    await finish({awaited})"]
