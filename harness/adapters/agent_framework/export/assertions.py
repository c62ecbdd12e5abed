"""What an exported file asserts, for each oracle that has a plain form.

Owns the text of the assertion; must not know in which order things happened.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.adapters.agent_framework.export.program import Program
from harness.adapters.agent_framework.export.storages import PlainStorage
from harness.model.outcome import Execution, Violation
from harness.report.export.source import ExportError


@dataclass(frozen=True, slots=True)
class Assertion:
    """What is asserted. notes: function name to a statement at its beginning. body, script: the last statements."""

    test: str
    body: tuple[str, ...]
    script: tuple[str, ...]
    notes: dict[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()


def _not_again(violation: Violation, execution: Execution, program: Program, _storage: PlainStorage) -> Assertion:
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
    said = (
        "print('executed:', executed)",
        f"if executed.count({value}) != {right}:",
        f'    raise SystemExit("BUG: {step} had completed and was executed again; {times} is right")',
    )
    return Assertion("test_completed_steps_are_restored", (test,), said, {step: note}, ("executed = []",))


def _one_chain(_violation: Violation, execution: Execution, program: Program, storage: PlainStorage) -> Assertion:
    """Compare the parents of all checkpoints: no two have the same, and one has none."""
    name = program.workflows[0]
    begun = [event for event in execution.journal if event.kind == "run.started" and event.data["checkpoint"] is None]
    # each run that begins with a message may add a root
    some = " if checkpoint.previous_checkpoint_id" if len(begun) > 1 else ""
    lines = (
        *(["await finish(asyncio.sleep(0))"] if storage.gates else []),
        f'checkpoints = await storage.list_checkpoints(workflow_name="{name}")',
        f"parents = [checkpoint.previous_checkpoint_id for checkpoint in checkpoints{some}]",
    )
    test = 'assert len(set(parents)) == len(parents), f"two checkpoints have one parent: {parents}"'
    said = (
        "print('parents of the checkpoints:', parents)",
        "if len(set(parents)) != len(parents):",
        '    raise SystemExit("BUG: two checkpoints have one parent")',
    )
    return Assertion("test_checkpoints_form_one_chain", (*lines, test), (*lines, *said))


ASSERTIONS: dict[str, Callable[[Violation, Execution, Program, PlainStorage], Assertion]] = {
    "completed_steps_restored": _not_again,
    "linear_lineage": _one_chain,
}
