"""A finding about a workflow as a plain program: framework calls, a small storage, an assertion.

Owns what an exported file says of agent-framework; must not know the command line, or how a file is laid out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.adapters.agent_framework.export.assertions import ASSERTIONS
from harness.adapters.agent_framework.export.program import Program
from harness.adapters.agent_framework.export.storages import MEMORY, PLAINER, PlainStorage, plain_storage
from harness.model.outcome import Execution, Violation
from harness.model.scenario import Scenario
from harness.report.export.gates import CANCEL, Order, order_of
from harness.report.export.layout import Draft
from harness.report.export.source import ExportError, Source

_IMPORTS = (("agent_framework", MEMORY, MEMORY), ("contextlib", "", "contextlib"))


def drafts(
    scenario: Scenario, setup: Mapping[str, str], execution: Execution, parked: Sequence[tuple[str, str]]
) -> Iterator[Draft]:
    """Yield the finding as source, the plainest first: how the storage waits is made plainer if that shows it too.

    setup: of its schedule. execution: with trace, journal and violation. parked: the name and the source line of
    each op, in the order in which they began to wait. Raises ExportError for what has no plain form.
    """
    violation = execution.violations[0]
    if violation.oracle not in ASSERTIONS:
        raise ExportError(f"no plain assertion is known for oracle {violation.oracle}")
    if setup.get("clock", "increasing") != "increasing":
        raise ExportError(f"the clock {setup['clock']} has no plain form")
    file = inspect.getsourcefile(scenario.program) or ""
    source = Source(Path(file).read_text(encoding="utf-8"))
    shape, faults = _decided(execution)
    name = setup["storage"]
    plainer = [(PLAINER.get(shape, shape), False), (shape, False), (shape, True)]
    for waits, reads in dict.fromkeys(plainer):
        storage = plain_storage(scenario, name, waits, faults, execution.journal, reads=reads)
        if reads and not storage.reads:
            continue
        yield _draft(scenario, source, execution, storage, parked)


def _draft(
    scenario: Scenario, source: Source, execution: Execution, storage: PlainStorage, parked: Sequence[tuple[str, str]]
) -> Draft:
    violation = execution.violations[0]
    program = Program(scenario, source, execution, storage)
    program.translate()
    judged = ASSERTIONS[violation.oracle](violation, execution, program, storage)
    title = scenario.summary.removesuffix(".") + "."
    if scenario.reference:
        title = f"{scenario.reference}: {title[:1].lower()}{title[1:]}"
    return Draft(
        title=title,
        source=source,
        roots=(*program.roots, *([storage.name] if storage.own else [])),
        storage=storage.text,
        test=judged.test,
        body=(f"storage = {storage.name}()", *program.body, *judged.body),
        script=(f"storage = {storage.name}()", *program.script, *judged.script),
        order=_order(source, execution, parked, violation, storage),
        gates=storage.gates,
        notes=judged.notes,
        variables=judged.variables,
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
            if not option.startswith(("cancelled at", "timed out at", "raises ")):
                raise ExportError(f"the fault {subject} {option!r} has no plain form")
            faults[subject] = option
        elif decision.kind == "program":
            raise ExportError("a generated program has no source to export")
    return shape, faults


def _order(
    source: Source,
    execution: Execution,
    parked: Sequence[tuple[str, str]],
    violation: Violation,
    storage: PlainStorage,
) -> Order:
    gates = [(name, _gate(source, name, where)) for name, where in parked]
    gates = [(name, "" if gate == "read" and not storage.reads else gate) for name, gate in gates]
    delivered = []
    for turn in execution.trace:
        if turn.number >= violation.turn and turn.what.startswith("step.invoked"):
            break  # the step began again: what comes later decides nothing
        if turn.what.startswith("deliver "):
            delivered.append(turn.what.removeprefix("deliver "))
        elif turn.what.startswith(("run.cancelled", "run.timeout")):
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
