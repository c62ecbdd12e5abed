"""A finding about a workflow as a plain program: framework calls, a small storage, an assertion.

Owns what an exported file says of agent-framework; must not know the command line, or how a file is laid out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.adapters.agent_framework.export.assertions import ASSERTIONS, Assertion, Case
from harness.adapters.agent_framework.export.endings import AGAIN, CRASH, DEADLINE
from harness.adapters.agent_framework.export.program import Program
from harness.adapters.agent_framework.export.storages import FINISHES, MEMORY, PLAINER, PlainStorage, plain_storage
from harness.model.outcome import Execution, Turn
from harness.model.scenario import Scenario
from harness.report.export.gates import CANCEL, QUIET, Order
from harness.report.export.layout import Draft, Tested
from harness.report.export.ops import gate_in, order_in
from harness.report.export.scenarios import tested_scenario
from harness.report.export.source import ExportError, Source

_IMPORTS = (
    ("agent_framework", MEMORY, MEMORY),
    ("agent_framework", "FunctionalWorkflow", "FunctionalWorkflow"),
    ("contextlib", "", "contextlib"),
    ("copy", "", "copy"),
    ("gc", "", "gc"),
)
_PLAIN_FAULTS = ("cancelled", "timed out at", "crashed at", "raises ", "closed at", "dropped at")
_RESUMES = re.compile(r"(resume|checkpoint|instance|second cancel) of run \d+")


@dataclass(frozen=True, slots=True)
class Finding:
    """A failing execution of a function. parked: the name and the source line of each op, as they began to wait."""

    tested: Tested
    execution: Execution
    parked: Sequence[tuple[str, str]]


def drafts(
    scenario: Scenario, setup: Mapping[str, str], execution: Execution, parked: Sequence[tuple[str, str]]
) -> Iterator[Draft]:
    """Yield a finding of a scenario as source, the plainest first.

    setup: of its schedule. execution: with trace, journal and violation. parked: the name and the source line of
    each op, in the order in which they began to wait. Raises ExportError for what has no plain form.
    """
    yield from drafts_of(Finding(tested_scenario(scenario, setup), execution, parked))


def drafts_of(finding: Finding) -> Iterator[Draft]:
    """Yield a finding as source, the plainest first: how the storage waits is made plainer if that shows it too."""
    execution, setup = finding.execution, finding.tested.setup
    violation = execution.violations[0]
    if violation.oracle not in ASSERTIONS:
        raise ExportError(f"no plain assertion is known for oracle {violation.oracle}")
    clock = setup.get("clock", "increasing")
    if not clock.startswith(("increasing", "coarse:", "frozen")):
        raise ExportError(f"the clock {clock} has no plain form")
    shape, faults, choices = _decided(execution)
    plainer = [(PLAINER.get(shape, shape), False), (shape, False), (shape, True)]
    if (setup["storage"], shape) == ("file", "as-is"):
        plainer.insert(0, (FINISHES, False))
    for waits, reads in dict.fromkeys(plainer):
        storage = plain_storage(finding.tested, execution, waits, faults, reads=reads)
        if reads and not storage.reads:
            continue
        case = Case(violation, execution, storage, finding.tested.source.definitions)
        for assertion in ASSERTIONS[violation.oracle](case):
            yield _draft(finding, storage.keeping() if assertion.keeps else storage, assertion, choices)


def _draft(finding: Finding, storage: PlainStorage, assertion: Assertion, choices: Mapping[str, str]) -> Draft:
    program = Program(
        finding.tested.function,
        finding.tested.variable,
        finding.tested.namespace,
        finding.tested.source,
        finding.execution,
        storage,
        assertion.around,
        choices,
    )
    program.translate()
    error = finding.execution.ending.error
    own = () if error is None else (type(error).__name__,)
    made = f"storage = {storage.name}()"
    return Draft(
        title=finding.tested.title,
        source=finding.tested.source,
        roots=(*finding.tested.roots, *program.roots, *([storage.name] if storage.own else [])),
        nodes=tuple(program.nodes),
        storage=storage.text,
        test=_test_name(finding, assertion),
        body=(*finding.tested.before, made, *program.lines.body, *assertion.body(program)),
        script=(*finding.tested.before, made, *program.lines.script, *assertion.script(program)),
        order=_order(finding, storage, quiets=program.quiets),
        gates=storage.gates,
        notes=assertion.notes,
        choices=choices,
        arguments=finding.tested.arguments,
        renamed=finding.tested.renamed,
        variables=assertion.variables,
        helpers=tuple(program.lines.helpers),
        imports=_IMPORTS,
        ends=assertion.ends,
        fails_with=("AssertionError", "assert ", "BUG: ", *own),
    )


def _test_name(finding: Finding, assertion: Assertion) -> str:
    name = finding.tested.function.name
    return name if name.startswith("test") else assertion.test or f"test_{name}"


def _decided(execution: Execution) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the await shape, the faults of saves, and what the program chose; raises ExportError for the rest."""
    shape = "as-is"
    faults: dict[str, str] = {}
    choices: dict[str, str] = {}
    for decision in execution.schedule.decisions:
        subject, _, option = decision.option.rpartition(": ")
        if decision.kind == "shape" and subject == "save":
            shape = option
        elif decision.kind == "shape":
            choices[subject] = option
        elif decision.kind == "order":
            raise ExportError("the order in which a set of tasks iterates cannot be chosen on the stock loop")
        elif decision.kind == "fault" and not _RESUMES.fullmatch(subject):
            if not option.startswith(_PLAIN_FAULTS):
                raise ExportError(f"the fault {subject} {option!r} has no plain form")
            faults[subject] = option
        elif decision.kind == "program":
            raise ExportError("a generated program has no source to export")
    return shape, faults, choices


def _order(finding: Finding, storage: PlainStorage, *, quiets: int) -> Order:
    """Return the order of the gates. quiets: how often the program waits until all is quiet."""
    seen = 0

    waits = _save_of_cosmos([op for op, _ in finding.parked])

    def gate(op: str, where: str) -> str:
        if op.rpartition("/")[2].partition(".")[0] in _COSMOS:
            return "save" if op in waits else ""
        found = _gate(finding.tested.source, op, where)
        return "" if found == "read" and not storage.reads else found

    def event(turn: Turn) -> str:
        nonlocal seen
        if turn.what.startswith("deliver ") and turn.what.endswith("/quiet"):
            seen += 1
            return QUIET if seen <= quiets else ""  # the last one is the harness's
        if turn.what.startswith("run.cancelled"):
            return CANCEL
        if turn.what.startswith("run.timeout"):
            return DEADLINE
        return CRASH if turn.what.startswith("run.ended") and turn.lane in crashed else ""

    execution = finding.execution
    ended = (item for item in execution.journal if item.kind == "run.ended")
    crashed = {f"run {item.run}" for item in ended if item.data.get("how") == "crashed"}
    order = order_in(
        execution,
        finding.parked,
        gate,
        until=execution.violations[0].turn,
        last=lambda turn: turn.what.startswith("step.invoked"),  # the step began again
        events=event,
    )
    if any(
        decision.option.rpartition(": ")[2].startswith("cancelled twice") for decision in execution.schedule.decisions
    ):
        at = order.names.index(CANCEL) + 1 if CANCEL in order.names else 0
        return Order((*order.names[:at], AGAIN, *order.names[at:]), numbered=order.numbered)
    return order


# What the Cosmos storage waits for, in this order.
_COSMOS = ("create_database_if_not_exists", "create_container_if_not_exists", "upsert_item", "query_items")


def _save_of_cosmos(ops: Sequence[str]) -> set[str]:
    """Return the ops that stand for a save: the write, or what came last of a save that did not get so far."""
    last: dict[str, str] = {}
    for op in ops:
        path, _, name = op.rpartition("/")
        if name in _COSMOS[:-1] and not last.get(path, "").endswith("upsert_item"):
            last[path] = op
    return {*last.values(), *(op for op in ops if op.endswith("/upsert_item"))}


def _gate(source: Source, op: str, where: str) -> str:
    """Return the gate that stands for an op, or "" when nothing does."""
    name = op.rpartition("/")[2]
    if re.fullmatch(r"save#\d+\.ack", name):
        return "ack"
    if name.startswith(("save#", "job:")) and not name.endswith(".done"):
        return "read" if name.startswith(("job:select", "job:partial")) else "save"
    if name.startswith("sleep(") and "storages" in where:
        return "save"
    return gate_in(source, op, where) or ("save" if name.startswith("sleep(") else "")


__all__ = ["Finding", "drafts", "drafts_of"]
