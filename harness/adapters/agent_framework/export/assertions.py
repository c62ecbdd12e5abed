"""What an exported file asserts, for each oracle that has a plain form.

Owns the text of the assertions, and what they need to know of the runs; must not know in which order things happened.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harness.adapters.agent_framework.export.program import Around, Program, outputs_of
from harness.adapters.agent_framework.export.storages import PlainStorage
from harness.model.outcome import Event, Execution, Violation
from harness.model.runs import runs_of
from harness.oracles.restore_complete import put_out_before
from harness.report.export.gates import REST
from harness.report.export.source import ExportError


@dataclass(frozen=True, slots=True)
class Assertion:
    """What is asserted at the end.

    test: the name of the test. lines: statements before it. holds: the expression that has to be true; "" where
    something else fails. message: the text behind ``assert``. bug: what a script says. shown: what it prints first.
    notes: function name to a statement at its beginning. around: what is needed of the runs. ends: that the program
    ends is asserted.
    """

    test: str
    lines: Callable[[Program], tuple[str, ...]] = lambda _: ()
    holds: str = ""
    message: str = ""
    bug: str = ""
    shown: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    around: Around = field(default_factory=Around)
    ends: bool = False
    keeps: bool = False

    def body(self, program: Program) -> tuple[str, ...]:
        """Return the last statements of a test."""
        if not self.holds:
            return self.lines(program)
        line = f"assert {self.holds}, {self.message}"
        if len(line) > _WIDTH:
            line = f"assert {self.holds}, (\n    {self.message}\n)"
        return (*self.lines(program), line)

    def script(self, program: Program) -> tuple[str, ...]:
        """Return the last statements of a script."""
        shown = (f"print({self.shown})",) if self.shown else ()
        if not self.holds:
            return (*self.lines(program), *shown)
        checked = (f"if {_negated(self.holds)}:", f'    raise SystemExit("BUG: {self.bug}")')
        return (*self.lines(program), *shown, *checked)


@dataclass(frozen=True, slots=True)
class Case:
    """A finding, as far as an assertion is made of it. upto: how many runs had begun when it showed."""

    violation: Violation
    execution: Execution
    storage: PlainStorage
    functions: dict[str, ast.stmt]

    @property
    def upto(self) -> int:
        """How many runs had begun when the promise was broken."""
        journal, turn = self.execution.journal, self.violation.turn
        seen = (
            index for index, event in enumerate(journal) if event.turn == turn and event.kind.startswith("storage.")
        )
        last = next(seen, len(journal))
        begun = [event for event in journal[:last] if event.kind == "run.started" and event.turn <= turn]
        return max(1, len(begun))

    @property
    def rest(self) -> list[str]:
        """What waits until all is quiet, where the promise was found broken then."""
        return [_AT_REST] if any(event.turn == self.violation.turn for event in self.events("storage.state")) else []

    def events(self, kind: str) -> list[Event]:
        """Return the events of one kind."""
        return [event for event in self.execution.journal if event.kind == kind]

    def run(self, pattern: str) -> int:
        """Return the number of the run that the violation names; raises ExportError when it names none so."""
        found = re.search(pattern, self.violation.message)
        if found is None:
            raise ExportError(f"{self.violation.message} has no plain form")
        return int(found.group(1))


Assertions = Callable[[Case], Iterator[Assertion]]
_WIDTH = 112  # of a line in the test's inner function
_AT_REST = f'await finish(gate("{REST}"))'


def _not_again(case: Case) -> Iterator[Assertion]:
    """Count the executions of the step that was executed again."""
    call = case.violation.message.partition(" completed in run ")[0]
    step = call.partition("(")[0]
    function = case.functions.get(step)
    if not isinstance(function, ast.AsyncFunctionDef):
        raise ExportError(f"the step {step!r} was not found under this name in the program's file")
    invoked = [event for event in case.events("step.invoked") if event.subject == step]
    calls = {event.data["call"] for event in invoked}
    right = sum(1 for event in invoked if event.data["call"] == call and event.run == 0) or 1
    if len(calls) == 1:
        note, value = f'executed.append("{step}")', f'"{step}"'
    else:
        arguments = ", ".join(f"{{{item.arg}!r}}" for item in function.args.args)
        note, value = f'executed.append(f"{step}({arguments})")', repr(call)
    times = "once" if right == 1 else f"{right} times"
    yield Assertion(
        "test_completed_steps_are_restored",
        holds=f"executed.count({value}) == {right}",
        message='f"a completed step was executed again: {executed}"',
        bug=f"{step} had completed and was executed again; {times} is right",
        shown="'executed:', executed",
        notes={step: note},
        variables=("executed = []",),
    )


def _one_chain(case: Case) -> Iterator[Assertion]:
    """Compare the parents of all checkpoints: no two have the same, and one has none."""
    begun = [event for event in case.events("run.started") if event.data["checkpoint"] is None]
    # each run that begins with a message may add a root
    some = " if checkpoint.previous_checkpoint_id" if len(begun) > 1 else ""

    def lines(program: Program) -> tuple[str, ...]:
        return (
            *(["await finish(asyncio.sleep(0))"] if case.storage.gates else []),
            f'checkpoints = await storage.list_checkpoints(workflow_name="{program.workflow_name()}")',
            f"parents = [checkpoint.previous_checkpoint_id for checkpoint in checkpoints{some}]",
        )

    yield Assertion(
        "test_checkpoints_form_one_chain",
        lines,
        holds="len(set(parents)) == len(parents)",
        message='f"two checkpoints have one parent: {parents}"',
        bug="two checkpoints have one parent",
        shown="'parents of the checkpoints:', parents",
    )


def _nothing_goes_on(case: Case) -> Iterator[Assertion]:
    """Compare the tasks before and after the run, or else what is stored when it ends and when all is quiet."""
    number = case.run(r"^run (\d+) ended")
    before, after = ["before = asyncio.all_tasks()"], ["left = asyncio.all_tasks() - before"]
    yield Assertion(
        "test_nothing_of_a_run_goes_on_after_it",
        holds="not left",
        message='f"the run has ended, and these tasks of it have not: {left}"',
        bug="the run has ended and tasks of it have not",
        shown="'tasks that are left:', left",
        around=Around({number: before}, {number: after}, runs=number + 1),
    )
    name = next(event.subject for event in case.events("run.started") if event.run == number)
    listed = f'await storage.list_checkpoints(workflow_name="{name}")'
    yield Assertion(
        "test_nothing_of_a_run_is_saved_after_it",
        lambda _: (_AT_REST, f"late = len({listed}) - saved"),
        holds="late == 0",
        message='f"{late} checkpoint(s) came after the run had ended"',
        bug="a checkpoint came after the run had ended",
        shown="'checkpoints that came late:', late",
        around=Around({}, {number: [f"saved = len({listed})"]}, runs=number + 1),
    )


def _same_outputs(case: Case, number: int, *, test: str, what: str) -> Iterator[Assertion]:
    """Compare what a run put out with what its message has on an instance of its own."""
    journal = case.execution.journal
    runs = runs_of(journal)
    run = runs[number]
    references = [event for event in case.events("run.reference") if event.data["message"] == run.data["message"]]
    wanted = Counter(references[0].data["values"]) if references else Counter()
    wanted -= Counter(put_out_before(journal, runs, run))
    values = list(wanted.elements())

    def lines(program: Program) -> tuple[str, ...]:
        got = outputs_of("result", program.ending(number))
        return (f"outputs = sorted({got})" if len(values) > 1 else f"outputs = {got}",)

    yield Assertion(
        test,
        lines,
        holds=f"outputs == [{', '.join(_quoted(value) for value in sorted(values))}]",
        message=f'f"{what}: {{outputs}}"',
        bug=what,
        shown="'outputs:', outputs",
        around=Around(results={number: "result"}, runs=number + 1),
    )


def _quoted(value: str) -> str:
    """Return a repr with the quotes that formatters prefer; raises ExportError for one that is no source."""
    try:
        ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise ExportError(f"the output {value} has no plain form") from None
    plain = value[:1] == "'" == value[-1:] and '"' not in value and "\\" not in value
    return f'"{value[1:-1]}"' if plain else value


def _isolated(case: Case) -> Iterator[Assertion]:
    """Compare outputs with those on an instance of its own, or who saved the checkpoint that is resumed from."""
    if " on a used instance returned " in case.violation.message:
        number = case.run(r"^run (\d+) on a used")
        test, what = "test_a_run_knows_nothing_of_the_one_before", "the run shows something of the one before it"
        yield from _same_outputs(case, number, test=test, what=what)
        return
    number, resumed = case.run(r"^run (\d+) resumes run"), case.run(r" resumes run (\d+)")
    name = next(event.subject for event in case.events("run.started") if event.run == resumed)
    ids = f'{{item.checkpoint_id for item in await storage.list_checkpoints(workflow_name="{name}")}}'
    yield Assertion(
        "test_a_run_is_resumed_from_its_own_checkpoint",
        holds="latest.checkpoint_id in own",
        message='"the run is resumed from a checkpoint of another one"',
        bug="the run is resumed from a checkpoint of another one",
        around=Around({resumed: [f"before = {ids}"]}, {resumed: [f"own = {ids} - before"]}, runs=number + 1),
    )


def _complete(case: Case) -> Iterator[Assertion]:
    """Compare what a resumed run put out, or say that it failed."""
    number = case.run(r"^run (\d+)")
    test = "test_a_resumed_run_ends_as_any_other"
    if " failed on resume: " in case.violation.message:
        yield Assertion(test, around=Around(refused={number: "the run fails when it is resumed"}, runs=number + 1))
        return
    yield from _same_outputs(case, number, test=test, what="the resumed run ends in another way")


def _released(case: Case) -> Iterator[Assertion]:
    """Say that the run was refused."""
    number = case.run(r"^run (\d+) was refused")
    around = Around(refused={number: "the next run is refused"}, runs=number + 1)
    yield Assertion("test_the_next_run_is_accepted", around=around)


def _maximal(case: Case) -> Iterator[Assertion]:
    """Look for a checkpoint that has the latest as its parent, or else for one that holds more steps."""

    def read(program: Program) -> tuple[str, ...]:
        name = f'workflow_name="{program.workflow_name()}"'
        return (
            *case.rest,
            f"latest = await storage.get_latest({name})",
            f"checkpoints = await storage.list_checkpoints({name})",
        )

    around = Around(runs=case.upto)
    yield Assertion(
        "test_the_latest_checkpoint_is_the_last_of_the_chain",
        lambda program: (*read(program), "parents = [checkpoint.previous_checkpoint_id for checkpoint in checkpoints]"),
        holds="latest.checkpoint_id not in parents",
        message='"the latest checkpoint has a child"',
        bug="the latest checkpoint has a child",
        around=around,
    )
    yield Assertion(
        "test_the_latest_checkpoint_holds_every_step",
        lambda program: (
            *read(program),
            'steps = [len(checkpoint.state["_step_cache"]) for checkpoint in checkpoints]',
        ),
        holds='len(latest.state["_step_cache"]) == max(steps)',
        message='f"the latest checkpoint lacks steps of another one: {steps}"',
        bug="the latest checkpoint lacks steps of another one",
        shown="'steps of each checkpoint:', steps",
        around=around,
    )


def _immutable(case: Case) -> Iterator[Assertion]:
    """Compare what is stored with a copy of what was passed to ``save``."""

    def lines(program: Program) -> tuple[str, ...]:
        listed = f'storage.list_checkpoints(workflow_name="{program.workflow_name()}")'
        return (f"changed = [item for item in await {listed} if item.to_dict() != storage.saved[item.checkpoint_id]]",)

    yield Assertion(
        "test_a_stored_checkpoint_stays_as_it_was",
        lines,
        holds="not changed",
        message='f"a stored checkpoint is not what was saved: {changed}"',
        bug="a stored checkpoint is not what was saved",
        around=Around(runs=case.upto),
        keeps=True,
    )


def _asked(case: Case) -> Iterator[Assertion]:
    """Look for the request in the latest checkpoint."""
    found = re.search(r"saw the request '([^']+)'", case.violation.message)
    number = case.run(r"^the caller of run (\d+)")
    request = found.group(1) if found else ""

    def lines(program: Program) -> tuple[str, ...]:
        read = f'storage.get_latest(workflow_name="{program.workflow_name(number)}")'
        return (
            *case.rest,
            f"latest = await {read}",
            "pending = {} if latest is None else latest.pending_request_info_events",
        )

    yield Assertion(
        "test_a_request_that_was_seen_is_stored",
        lines,
        holds=f'"{request}" in pending',
        message='f"a request that was seen is not in the latest checkpoint: {list(pending)}"',
        bug="a request that was seen is not in the latest checkpoint",
        shown="'requests of the latest checkpoint:', list(pending)",
        around=Around(runs=number + 1),
    )


def _replayed(case: Case) -> Iterator[Assertion]:
    """Compare what the resumed run returns with what an undisturbed run does."""
    number = case.run(r"(?:^run|in run) (\d+)(?: replayed| it returned)")

    def lines(program: Program) -> tuple[str, ...]:
        return (f"expected = await finish({program.build(number)}.run({program.message(number)}))",)

    yield Assertion(
        "test_a_replay_ends_as_a_run_without_one",
        lines,
        holds="result.get_outputs() == expected.get_outputs()",
        message='f"{result.get_outputs()}, not {expected.get_outputs()}"',
        bug="the resumed run returns something else than a run that nothing disturbs",
        shown="result.get_outputs(), expected.get_outputs()",
        around=Around(results={number: "result"}, runs=number + 1),
    )


def _stable(case: Case) -> Iterator[Assertion]:
    """Compare what the run and the resumed run return."""
    first = case.run(r"to the body of run (\d+)")
    number = case.run(r"on replay in run (\d+)")
    yield Assertion(
        "test_a_replay_goes_the_way_of_the_run",
        holds="again.get_outputs() == first.get_outputs()",
        message='f"{again.get_outputs()}, not {first.get_outputs()}"',
        bug="the replay goes another way than the run",
        shown="first.get_outputs(), again.get_outputs()",
        around=Around(results={first: "first", number: "again"}, runs=number + 1),
    )


def _its_own(case: Case) -> Iterator[Assertion]:
    """Look at the tasks that were there before the run: nobody but the run can have asked them to end."""
    number = case.run(r"^run (\d+) cancelled the task")
    if case.execution.ending.kind == "deadlock" or any(
        event.kind in ("run.cancelled", "run.timeout") for event in case.execution.journal
    ):
        raise ExportError("who cancelled a task is not seen from outside where the run itself is cancelled")
    yield Assertion(
        "test_a_run_cancels_only_tasks_of_its_own",
        holds="not cancelled",
        message='f"the run cancelled tasks that are not its own: {cancelled}"',
        bug="the run cancelled tasks that are not its own",
        shown="'tasks of others that were cancelled:', cancelled",
        around=Around(
            {number: ["others = asyncio.all_tasks() - {asyncio.current_task()}"]},
            {number: ["cancelled = [task for task in others if task.cancelling() or task.cancelled()]"]},
            runs=number + 1,
        ),
    )


def _ends(case: Case) -> Iterator[Assertion]:
    """Let the run go on until nothing can happen any more."""
    yield Assertion("test_the_run_ends", ends=True, around=Around(runs=case.upto))


def _own(_case: Case) -> Iterator[Assertion]:
    """The program asserts it itself."""
    yield Assertion("")


ASSERTIONS: dict[str, Assertions] = {
    "assertion": _own,
    "completed_steps_restored": _not_again,
    "decision_stable": _stable,
    "guard_released": _released,
    "latest_is_maximal": _maximal,
    "linear_lineage": _one_chain,
    "no_zombies": _nothing_goes_on,
    "ownership": _its_own,
    "progress": _ends,
    "replay_identity": _replayed,
    "request_durable": _asked,
    "restore_complete": _complete,
    "run_isolation": _isolated,
    "snapshot_immutable": _immutable,
}


def _negated(expression: str) -> str:
    """Return the opposite of a comparison, as one would write it."""
    for one, other in ((" not in ", " in "), (" in ", " not in "), (" == ", " != ")):
        left, found, right = expression.partition(one)
        if found:
            return f"{left}{other}{right}"
    return expression.removeprefix("not ")
