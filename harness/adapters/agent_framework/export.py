"""A finding about a workflow as a plain program: framework calls, a small storage, an assertion.

Owns what an exported file says of agent-framework; must not know the command line, or how a file is laid out.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model.outcome import Event, Execution, Violation
from harness.model.scenario import Scenario
from harness.report.export.gates import CANCEL, Order, order_of
from harness.report.export.layout import Draft
from harness.report.export.source import ExportError, Source

_AF = "agent_framework"
_MEMORY = (_AF, "InMemoryCheckpointStorage", "InMemoryCheckpointStorage")
_IMPORTS = (
    _MEMORY,
    ("contextlib", "", "contextlib"),
)
# What a storage of ours is in a plain program. A job that was handed to a thread runs even when nobody waits for it.
_WAITS = {
    "memory": "as-is",
    "remote": "latency-before",
    "write-order": "latency-before",
    "file": "thread",
    "sqlite": "thread",
}
# Shapes that differ from a plainer one in what they cost, and seldom in what they break.
_PLAINER = dict.fromkeys(("create-task", "gather", "latency-both"), "latency-before")
_SHAPES = {
    "as-is": (False, False),
    "latency-before": (True, False),
    "latency-after": (False, True),
    "latency-both": (True, True),
    "create-task": (True, False),
    "gather": (True, False),
    "shield": (True, False),
    "executor": (True, False),
    "thread": (True, False),
}


def drafts(
    scenario: Scenario, setup: Mapping[str, str], execution: Execution, parked: Sequence[tuple[str, str]]
) -> Iterator[Draft]:
    """Yield the finding as source, the plainest first: how the storage waits is made plainer if that shows it too.

    setup: of its schedule. execution: with trace, journal and violation. parked: the name and the source line of
    each op, in the order in which they began to wait. Raises ExportError for what has no plain form.
    """
    violation = execution.violations[0]
    if violation.oracle not in _ASSERTIONS:
        raise ExportError(f"no plain assertion is known for oracle {violation.oracle}")
    if setup.get("clock", "increasing") != "increasing":
        raise ExportError(f"the clock {setup['clock']} has no plain form")
    file = inspect.getsourcefile(scenario.program) or ""
    source = Source(Path(file).read_text(encoding="utf-8"))
    shape, faults = _decided(execution)
    name = setup["storage"]
    plainer = [(_PLAINER.get(shape, shape), False), (shape, False), (shape, True)]
    for waits, reads in dict.fromkeys(plainer):
        storage = _storage(scenario, name, waits, faults, execution.journal, reads=reads)
        if reads and not storage.reads:
            continue
        yield _draft(scenario, source, execution, storage, parked)


def _draft(
    scenario: Scenario, source: Source, execution: Execution, storage: _Storage, parked: Sequence[tuple[str, str]]
) -> Draft:
    violation = execution.violations[0]
    program = _Program(scenario, source, execution, storage)
    program.translate()
    notes, variables, test, tail, script = _ASSERTIONS[violation.oracle](violation, execution, program, storage)
    title = scenario.summary.removesuffix(".") + "."
    if scenario.reference:
        title = f"{scenario.reference}: {title[:1].lower()}{title[1:]}"
    return Draft(
        title=title,
        source=source,
        roots=(*program.roots, *([storage.name] if storage.own else [])),
        storage=storage.text,
        test=test,
        body=(f"storage = {storage.name}()", *program.body, *tail),
        script=(f"storage = {storage.name}()", *program.script, *script),
        order=_order(source, execution, parked, violation, storage),
        gates=storage.gates,
        notes=notes,
        variables=variables,
        imports=_IMPORTS,
    )


def _decided(execution: Execution) -> tuple[str, dict[str, str]]:
    """Return the await shape, and the faults by subject; raises ExportError for a choice without a plain form."""
    shape = "as-is"
    faults: dict[str, str] = {}
    for decision in execution.schedule.decisions:
        subject, _, option = decision.option.rpartition(": ")
        if decision.kind == "shape":
            shape = option
        elif decision.kind == "order":
            raise ExportError("the order in which a set of tasks iterates cannot be chosen on the stock loop")
        elif decision.kind == "fault":
            if not option.startswith(("cancelled at", "raises ")):
                raise ExportError(f"the fault {subject} {option!r} has no plain form")
            faults[subject] = option
        elif decision.kind == "program":
            raise ExportError("a generated program has no source to export")
    return shape, faults


# -- the order of the gates ----------------------------------------------------------------------------


def _order(
    source: Source,
    execution: Execution,
    parked: Sequence[tuple[str, str]],
    violation: Violation,
    storage: _Storage,
) -> Order:
    gates = [(name, _gate(source, name, where)) for name, where in parked]
    gates = [(name, "" if gate == "read" and not storage.reads else gate) for name, gate in gates]
    delivered = []
    for turn in execution.trace:
        if turn.number >= violation.turn and turn.what.startswith("step.invoked"):
            break  # the step began again: what comes later decides nothing
        if turn.what.startswith("deliver "):
            delivered.append(turn.what.removeprefix("deliver "))
        elif turn.what.startswith("run.cancelled"):
            delivered.append(CANCEL)
    return order_of(_reached(gates, execution, violation), delivered)


def _reached(gates: Sequence[tuple[str, str]], execution: Execution, violation: Violation) -> list[tuple[str, str]]:
    """Return the ops that began to wait before the violation: those of tasks that had been born by then."""
    late = {
        turn.what.removeprefix("deliver ")
        for turn in execution.trace
        if turn.number > violation.turn and turn.what.startswith("deliver ")
    }
    early = {
        turn.what.removeprefix("deliver ")
        for turn in execution.trace
        if turn.number <= violation.turn and turn.what.startswith("deliver ")
    }
    # An op that never arrived was cancelled, or waits still; one that arrived later only matters if it was held.
    held = {str(decision.option.rpartition(": ")[0]) for decision in execution.schedule.decisions}
    return [(name, gate) for name, gate in gates if name in early or name in held or name not in late]


def _gate(source: Source, op: str, where: str) -> str:
    """Return the gate that stands for an op, or "" when nothing does."""
    name = op.rpartition("/")[2]
    if name.startswith(("quiet", "patience", "timer(")) or name.endswith(".done"):
        return ""
    if re.fullmatch(r"save#\d+\.ack", name):
        return "ack"
    if name.startswith(("save#", "job:")):
        return "read" if name.startswith(("job:select", "job:partial")) else "save"
    if name.startswith("sleep("):
        path, _, line = where.rpartition(":")
        function = source.function_at(int(line)) if line.isdigit() and "storages" not in path else ""
        return function or "save"
    return name


# -- the storage ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Storage:
    """The storage of an exported file. own: the program defines it. gates: where it waits. reads: reads wait too."""

    name: str
    text: str = ""
    own: bool = False
    gates: tuple[str, ...] = ()
    reads: bool = False


def _storage(
    scenario: Scenario,
    name: str,
    shape: str,
    faults: Mapping[str, str],
    journal: Sequence[Event],
    *,
    reads: bool,
) -> _Storage:
    factory = scenario.storages.get(name)
    if factory is not None:
        made = type(factory(Path()))
        if made.__module__ != scenario.program.__module__ or shape != "as-is":
            raise ExportError(f"the storage {name!r} has no plain form")
        return _Storage(made.__name__, own=True)
    if name not in _WAITS:
        raise ExportError(f"the storage {name!r} has no plain form")
    waits = _WAITS[name] if shape == "as-is" else shape
    yields = re.fullmatch(r"yields?-(before|after)", waits)
    before, after = _SHAPES.get(waits, (False, False))
    raising = {subject: option for subject, option in faults.items() if option.startswith("raises ")}
    if waits == "as-is" and not raising:
        return _Storage(_MEMORY[1])
    count = 8 if waits.startswith("yields") else 1
    nap = ["await asyncio.sleep(0)"] if count == 1 else [f"for _ in range({count}):", "    await asyncio.sleep(0)"]
    lines = list(nap) if yields and yields[1] == "before" else []
    if before:
        lines.append('await gate("save")')
    if raising:
        lines += _raises(raising, journal, when="before")
    if name == "write-order":
        lines.append("self._checkpoints.pop(checkpoint.checkpoint_id, None)")
    tail = [*(nap if yields and yields[1] == "after" else []), *(['await gate("ack")'] if after else [])]
    tail += _raises(raising, journal, when="after") if raising else []
    tail = [line for line in tail if line]
    lines += (
        ["result = await super().save(checkpoint)", *tail, "return result"]
        if tail
        else ["return await super().save(checkpoint)"]
    )
    doc, extra = _HOW.get(waits, ("in memory", "save"))
    if raising:
        doc = "its connection breaks during one save"
        lines.insert(0, "self.saves += 1")
    methods = _methods(extra, lines)
    if raising:
        methods.insert(0, "saves = 0")
    reads = reads and name == "sqlite" and waits == "thread"
    if reads:
        methods.append(
            "async def get_latest(self, *, workflow_name):\n"
            '    await gate("read")\n    return await super().get_latest(workflow_name=workflow_name)'
        )
    if name == "write-order":
        doc = "the latest is what was written last, as by a serial number"
        methods.append(
            "async def get_latest(self, *, workflow_name):\n"
            "    checkpoints = await self.list_checkpoints(workflow_name=workflow_name)\n"
            "    return checkpoints[-1] if checkpoints else None"
        )
    body = "\n\n".join("\n".join(f"    {line}" for line in method.splitlines()) for method in methods)
    text = f"class Storage({_MEMORY[1]}):  # {doc}\n{body}"
    gates = (*(["save"] if before else []), *(["ack"] if after else []), *(["read"] if reads else []))
    return _Storage("Storage", text=text, gates=gates, reads=reads)


# How a save waits: what the class says of it, and who runs its body.
_HOW = {
    "latency-before": ("its save waits for the network before it writes", "save"),
    "latency-after": ("its save waits for the answer after it wrote", "save"),
    "latency-both": ("its save waits before and after it writes", "save"),
    "create-task": ("its save is a task of its own", "await asyncio.create_task(self.write(checkpoint))"),
    "gather": (
        "its save gathers two operations",
        "(await asyncio.gather(self.write(checkpoint), asyncio.sleep(0)))[0]",
    ),
    "shield": ("its save is shielded", "await asyncio.shield(asyncio.create_task(self.write(checkpoint)))"),
    "thread": (
        "a save is no task of the run, as on a thread",
        "await asyncio.shield(asyncio.Task(self.write(checkpoint)))",
    ),
}
_HOW["executor"] = _HOW["thread"]


def _methods(how: str, lines: Sequence[str]) -> list[str]:
    if how == "save":
        return ["async def save(self, checkpoint):\n" + "\n".join(f"    {line}" for line in lines)]
    return [
        f"async def save(self, checkpoint):\n    return {how}",
        "async def write(self, checkpoint):\n" + "\n".join(f"    {line}" for line in lines),
    ]


def _raises(raising: Mapping[str, str], journal: Sequence[Event], *, when: str) -> list[str]:
    saves = [event.subject for event in journal if event.kind == "save.called"]
    lines = []
    for subject, option in raising.items():
        if option == f"raises {when} commit" and subject in saves:
            lines += [f"if self.saves == {saves.index(subject) + 1}:", '    raise RuntimeError("connection lost")']
    return lines


# -- the program ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Program:
    """The statements of a scenario, one by one, as calls of the framework."""

    scenario: Scenario
    source: Source
    execution: Execution
    storage: _Storage
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
        if how == "cancelled":
            gate = f'asyncio.ensure_future(gate("{CANCEL}"))'
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


# -- the assertions ------------------------------------------------------------------------------------

_Assertion = tuple[dict[str, str], tuple[str, ...], str, list[str], list[str]]


def _not_again(violation: Violation, execution: Execution, program: _Program, _storage: _Storage) -> _Assertion:
    """Count the executions of the step that was executed again."""
    call = violation.message.partition(" completed in run ")[0]
    step = call.partition("(")[0]
    function = program.source.definitions.get(step)
    if not isinstance(function, ast.AsyncFunctionDef):
        raise ExportError(f"the step {step!r} was not found under this name in the scenario's file")
    invoked = [event for event in execution.journal if event.kind == "step.invoked" and event.subject == step]
    calls = {event.data["call"] for event in invoked}
    right = sum(1 for event in invoked if event.data["call"] == call and event.run == 0) or 1
    if len(calls) == 1:
        note, value = f'executed.append("{step}")', f'"{step}"'
    else:
        arguments = ", ".join(f"{{{item.arg}!r}}" for item in function.args.args)
        note, value = f'executed.append(f"{step}({arguments})")', repr(call)
    times = "once" if right == 1 else f"{right} times"
    test = f'assert executed.count({value}) == {right}, f"a completed step was executed again: {{executed}}"'
    said = [
        "print('executed:', executed)",
        f"if executed.count({value}) != {right}:",
        f'    raise SystemExit("BUG: {step} had completed and was executed again; {times} is right")',
    ]
    return {step: note}, ("executed = []",), "test_completed_steps_are_restored", [test], said


def _one_chain(_violation: Violation, _execution: Execution, program: _Program, storage: _Storage) -> _Assertion:
    """Compare the parents of all checkpoints: one has none, and no two have the same."""
    lines = ["await finish(asyncio.sleep(0))"] if storage.gates else []
    lines.append(f'checkpoints = await storage.list_checkpoints(workflow_name="{program.workflows[0]}")')
    lines.append("parents = [checkpoint.previous_checkpoint_id for checkpoint in checkpoints]")
    test = 'assert len(set(parents)) == len(parents), f"two checkpoints have one parent: {parents}"'
    said = [
        "print('parents of the checkpoints:', parents)",
        "if len(set(parents)) != len(parents):",
        '    raise SystemExit("BUG: two checkpoints have one parent")',
    ]
    return {}, (), "test_checkpoints_form_one_chain", [*lines, test], [*lines, *said]


_ASSERTIONS: dict[str, Any] = {
    "completed_steps_restored": _not_again,
    "linear_lineage": _one_chain,
}
