"""A finding of a program that runs agents or graphs, as a plain program: what frameworks have in common.

Owns the order of the gates and what is asserted; must not know how a framework is called, which ``Calls`` says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from harness.adapters.plain_statements import CRASH, STORAGE, Call, Statements, crashed_in
from harness.model.outcome import Execution, Turn, Violation
from harness.model.scenario import Scenario
from harness.report.export.gates import CANCEL, Order
from harness.report.export.layout import Draft, Tested
from harness.report.export.ops import gate_in, order_in
from harness.report.export.scenarios import tested_scenario
from harness.report.export.source import ExportError, Source

Imports = tuple[tuple[str, str, str], ...]
_BEGUN = """async def begun(storage, count):
    while storage.begun < count:
        await asyncio.sleep(0)"""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What is asserted at the end. notes, variables: as of ``Draft``. storage: "" for the usual one, else its class."""

    test: str
    lines: tuple[str, ...]
    holds: str
    message: str
    bug: str
    notes: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    storage: str = ""


class Calls(Protocol):
    """How one framework is called. name: of the framework. imports, helpers: that the calls may need."""

    name: str
    imports: Imports

    def helpers(self, borrowed: Sequence[str], calls: Sequence[Call]) -> tuple[str, ...]:
        """Return helpers, those of the harness that the program borrows among them; raises ExportError."""
        ...

    def storage(self, name: str, *, gated: bool, counts: bool) -> tuple[str, str]:
        """Return the expression of a new storage and its class, "" for none; raises ExportError.

        gated: whether the storage called ``name`` waits. counts: whether it counts in ``begun`` the saves that began.
        """
        ...

    def setup(self) -> tuple[str, ...]:
        """Return the statements before the first run."""
        ...

    def call(self, call: Call) -> tuple[tuple[str, ...], str]:
        """Return statements, and the expression that awaits a run."""
        ...

    def assertion(self, violation: Violation, execution: Execution) -> Assertion | None:
        """Return what an oracle asserts in terms of this framework, or None where it does not know."""
        ...


def drafts(
    calls: Calls, scenario: Scenario, setup: Mapping[str, str], execution: Execution, parked: Sequence[tuple[str, str]]
) -> Iterator[Draft]:
    """Yield a finding of a scenario as source; raises ExportError for what has no plain form."""
    yield from test_drafts(calls, tested_scenario(scenario, setup), execution, parked)


def test_drafts(
    calls: Calls, tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]]
) -> Iterator[Draft]:
    """Yield the same of a test that takes ``durable``."""
    name, source = tested.setup[STORAGE], tested.source
    if tested.storages.get(name) is not None:
        raise ExportError(f"the storage {name!r} has no plain form: it is the program's own")
    _check_decisions(execution)
    violation = execution.violations[0]
    assertion = calls.assertion(violation, execution) or _not_again(violation, execution, source)
    if assertion is None:
        raise ExportError(f"no plain assertion is known for oracle {violation.oracle} of {calls.name}")
    program = Statements(calls, tested, execution, waits=name == "remote")
    program.translate()
    order = _order(tested, execution, parked, waits=name == "remote")
    gated = any(gate.partition(" ")[0] == "save" for gate in order.names)
    counts = gated and bool(crashed_in(execution))
    made, text = calls.storage(name, gated=gated, counts=counts)
    if assertion.storage:
        made, text = f"{assertion.storage.partition('(')[0].removeprefix('class ')}()", assertion.storage
    helpers = (*calls.helpers(_borrowed(source, program.nodes), program.calls), *([_BEGUN] if counts else []))
    begin = (*tested.before, f"{STORAGE} = {made}", *calls.setup())
    test = tested.function.name if tested.function.name.startswith("test") else assertion.test
    yield Draft(
        title=tested.title,
        source=source,
        roots=tested.roots,
        nodes=tuple(program.nodes),
        storage=text,
        test=test,
        body=(*begin, *program.lines, *assertion.lines, f"assert {assertion.holds}, {assertion.message}"),
        script=(
            *begin,
            *program.lines,
            *assertion.lines,
            f"if not ({assertion.holds}):",
            f'    raise SystemExit("BUG: {assertion.bug}")',
        ),
        order=order,
        gates=("save",) if 'gate("save")' in text else (),
        notes=assertion.notes,
        arguments=tested.arguments,
        renamed=tested.renamed,
        variables=assertion.variables,
        helpers=helpers,
        imports=(("copy", "", "copy"), ("contextlib", "", "contextlib"), *calls.imports),
    )


def _check_decisions(execution: Execution) -> None:
    """Raise ExportError for a deviation that is neither an order nor a crash or cancellation of a run."""
    for decision in execution.schedule.decisions:
        option = decision.option.rpartition(": ")[2]
        plain = decision.label.startswith("run ") and option.startswith(("crashed at", "cancelled at"))
        if decision.kind not in ("hold", "arrival", "lane") and not (decision.kind == "fault" and plain):
            raise ExportError(f"the choice {decision.option!r} has no plain form")


def _order(tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]], *, waits: bool) -> Order:
    """Return the order of the gates. waits: sleeps that are not the program's own are those of its storage."""
    file = str(tested.namespace.get("__file__"))
    crashed = crashed_in(execution)

    def gate(op: str, where: str) -> str:
        name, place = op.rpartition("/")[2], where.rpartition(":")[0]
        if name.startswith("job:"):
            raise ExportError(f"the storage {tested.setup[STORAGE]!r} works on a thread, which no gate can hold")
        if name.startswith("sleep(") and place != file:
            return "save" if waits else ""
        return gate_in(tested.source, op, where)

    def event(turn: Turn) -> str:
        if turn.what.startswith("run.cancelled"):
            return CANCEL
        return CRASH if turn.what.startswith("run.ended") and turn.lane in crashed else ""

    def begins_again(turn: Turn) -> bool:
        return turn.what.startswith("step.invoked")

    until = execution.violations[0].turn
    order = order_in(execution, parked, gate, until=until, last=begins_again, events=event)
    if not waits:
        return order
    # a crash in the midst of saves comes when the last of them began, and has no gate
    return replace(order, names=tuple(name for name in order.names if name.partition(" ")[0] != CRASH))


def _not_again(violation: Violation, execution: Execution, source: Source) -> Assertion | None:
    """Count the executions of the step that was executed again."""
    if violation.oracle != "completed_steps_restored":
        return None
    call = violation.message.partition(" completed in run ")[0]
    step = call.partition("(")[0]
    invoked = [event for event in execution.journal if event.kind == "step.invoked" and event.subject == step]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    if not any(isinstance(node, functions) and node.name == step for node in ast.walk(source.tree)):
        raise ExportError(f"the step {step!r} was not found under this name in the program's file")
    if len({str(event.data["call"]) for event in invoked}) > 1:
        raise ExportError(f"the step {step!r} is called in several ways, which the file does not tell apart")
    right = max(1, sum(1 for event in invoked if event.run == 0))
    return Assertion(
        "test_completed_steps_are_restored",
        (),
        holds=f'executed.count("{step}") == {right}',
        message='f"a completed step was executed again: {executed}"',
        bug=f"{step} had completed and was executed again; {'once' if right == 1 else f'{right} times'} is right",
        notes={step: f'executed.append("{step}")'},
        variables=("executed = []",),
    )


def _borrowed(source: Source, nodes: Sequence[ast.AST]) -> list[str]:
    """Return the names that what ``nodes`` need imports from the harness inside of functions."""
    found: list[str] = []
    for name in source.needed((), nodes):
        for node in ast.walk(source.definitions[name]):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harness."):
                found += [alias.name for alias in node.names]
    return found
