"""A failing test as a test that needs neither the marker nor the plugin.

Owns what becomes of a test's fixtures and parameters; must not know how a durable framework is called.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.adapters.targets import Adapter
from harness.model.errors import DivergenceError, UsageError
from harness.model.outcome import Execution
from harness.model.rung import Rung
from harness.model.schedule import Schedule
from harness.report.export.gates import Order
from harness.report.export.layout import Draft, Tested, lay_out
from harness.report.export.ops import gate_in, in_short, order_in
from harness.report.export.plain import Plain
from harness.report.export.source import ExportError, Source
from harness.search.explain import explanation_of
from harness.search.replay import watch
from harness.search.result import counterexample_of
from harness.search.target import Target

# How many iterations after the gate before it an early gate may open.
_EARLY = 8
SLEEP = "sleep"
_SLEEP = f'''real_sleep = asyncio.sleep


async def sleep(delay, result=None):  # stands for work of unknown duration, which is done when its gate opens
    await (gate("{SLEEP}") if delay > 0 else real_sleep(0))
    return result'''


def plain_drafts(item: Any, execution: Execution, parked: Sequence[tuple[str, str]]) -> Iterator[Draft]:
    """Yield a test that failed by itself as source, with its order as it was, and then with early arrivals.

    item: the collected test. Raises ExportError for what has no plain form.
    """
    parts = Parts.of(item)
    ending = execution.ending
    if ending.kind not in ("raised", "deadlock"):
        raise ExportError(f"a test that ends as {ending.kind!r} has no plain form")
    for decision in execution.schedule.decisions:
        if decision.kind in ("shape", "order", "program", "fault"):
            raise ExportError(f"the choice {decision.option!r} has no plain form")
    order = order_in(execution, parked, parts.gate, until=execution.turns)
    body = parts.wrapped(Plain(parts.source).body(parts.function))
    arguments, helpers = parts.arguments, tuple[str, ...]()
    if parts.patches_sleep:
        arguments = (*arguments, *(["monkeypatch"] if "monkeypatch" not in arguments else []))
        body, helpers = ('monkeypatch.setattr(asyncio, "sleep", sleep)', *body), (_SLEEP,)
    error = type(ending.error).__name__
    draft = Draft(
        title=parts.title,
        source=parts.source,
        roots=parts.roots,
        nodes=(parts.function,),
        test=parts.function.name,
        body=body,
        script=body,
        order=order,
        whole=True,
        arguments=arguments,
        renamed=parts.renamed,
        helpers=helpers,
        imports=(("contextlib", "", "contextlib"),),
        ends=ending.kind == "deadlock",
        fails_with=("AssertionError", "assert ") if ending.kind == "deadlock" else (error, "assert "),
    )
    yield draft
    for name in dict.fromkeys(_early(execution, order)):
        for count in range(1, _EARLY + 1):
            yield replace(draft, order=replace(order, early={name: count}))


def _early(execution: Execution, order: Order) -> Iterator[str]:
    """Yield the gates that may have opened while others still ran."""
    if execution.schedule.discipline == "ranks" and not any(
        decision.kind == "hold" and decision.option.endswith(": early") for decision in execution.schedule.decisions
    ):
        return
    yield from order.names


@dataclass(slots=True)
class Parts:
    """The function of a test, and what its fixtures and parameters become.

    roots: definitions that stay as they are. arguments: fixtures that pytest passes. renamed: async fixtures, which
    the test calls itself. before: their calls, and the values of parameters. patches_sleep: whether what the test only
    imports sleeps.
    """

    source: Source
    function: ast.AsyncFunctionDef
    file: Path
    files: list[Path]
    roots: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    left_out: tuple[str, ...] = ()
    patches_sleep: bool = False

    @classmethod
    def of(cls, item: Any, *, left_out: tuple[str, ...] = ()) -> Parts:
        """Read the files of a collected test. left_out: fixtures that stand for something else."""
        code = item.function.__code__
        file = Path(code.co_filename)
        defs = _fixture_defs(item, left_out)
        files = list(dict.fromkeys([file, *(Path(inspect.getfile(found.func)) for found in defs.values())]))
        source = Source(*(path.read_text(encoding="utf-8") for path in files))
        parts = cls(source, source.function(code.co_name, code.co_firstlineno), file, files, left_out=left_out)
        parts._read_self()
        parts._read_parameters(item)
        parts._read_fixtures(item, defs)
        return parts

    @property
    def title(self) -> str:
        """The first line of the test's docstring, or its name in words."""
        text = (ast.get_docstring(self.function) or "").partition("\n")[0]
        text = text or self.function.name.removeprefix("test_").replace("_", " ").capitalize()
        return text.removesuffix(".") + "."

    def gate(self, op: str, where: str) -> str:
        """Return the gate of an op of the test's own files, or of a sleep; raises ExportError for any other."""
        file, _, line = where.rpartition(":")
        if line.isdigit() and Path(file) in self.files:
            where = f"{file}:{int(line) + self.source.firsts[self.files.index(Path(file))]}"
        elif op.rpartition("/")[2].startswith("sleep("):
            self.patches_sleep = True
            return SLEEP
        elif where and not op.rpartition("/")[2].startswith("timer("):
            raise ExportError(f"{op} waits in {Path(file).name}, which the test only imports: no gate can be put there")
        return gate_in(self.source, op, where)

    def wrapped(self, body: Sequence[str]) -> tuple[str, ...]:
        """Return ``body`` with what comes before it; an ``async with`` holds all that follows."""
        lines: list[str] = list(body)
        for statement in reversed(self.before):
            if statement.startswith("async with "):
                lines = [
                    statement,
                    *("\n".join(f"    {row}" if row else "" for row in text.split("\n")) for text in lines),
                ]
            else:
                lines.insert(0, statement)
        return tuple(lines)

    def _read_self(self) -> None:
        arguments = self.function.args.args
        if arguments and arguments[0].arg == "self":
            if "self" in {node.id for node in ast.walk(self.function) if isinstance(node, ast.Name)}:
                raise ExportError("a test that uses 'self' has no plain form: make it a function")
            self.left_out += ("self",)

    def _read_parameters(self, item: Any) -> None:
        callspec = getattr(item, "callspec", None)
        for name, value in ({} if callspec is None else callspec.params).items():
            if name in self.left_out:
                continue
            self.left_out += (name,)
            try:
                same = ast.literal_eval(repr(value)) == value
            except (SyntaxError, ValueError):
                same = False
            if not same or name not in self.argument_names:
                raise ExportError(f"the parameter {name!r} has no plain form: its value is {value!r}")
            self.before.append(f"{name} = {value!r}")

    def _read_fixtures(self, item: Any, defs: Mapping[str, Any]) -> None:
        self.roots = tuple(name for name in defs if not _is_async(defs[name].func))
        wanted: list[str] = []
        # pytest knows by itself which others are used everywhere; one that is async runs in the test
        everywhere = [name for name in item._fixtureinfo.initialnames if name in defs and _is_async(defs[name].func)]
        marked = [str(name) for marker in item.iter_markers("usefixtures") for name in marker.args]
        for name in (*self.argument_names, *marked, *everywhere):
            self._want(name, defs, wanted)
        self.roots += tuple(self.renamed)
        self.arguments = tuple(wanted)

    def _want(self, name: str, defs: Mapping[str, Any], wanted: list[str]) -> None:
        """Add fixture ``name`` after those that it needs: to what pytest passes, or to what the test calls."""
        if name in wanted or name in self.renamed or name in self.left_out:
            return
        if name not in defs or not _is_async(defs[name].func):
            wanted.append(name)
            return
        arguments = list(inspect.signature(defs[name].func).parameters)
        for other in arguments:
            self._want(other, defs, wanted)
        self.renamed[name] = f"make_{name}"
        listed = ", ".join(arguments)
        if inspect.isasyncgenfunction(defs[name].func):
            self.before.append(f"async with contextlib.asynccontextmanager(make_{name})({listed}) as {name}:")
        else:
            self.before.append(f"{name} = await make_{name}({listed})")

    @property
    def argument_names(self) -> list[str]:
        """The names of the test's arguments."""
        return [argument.arg for argument in (*self.function.args.args, *self.function.args.kwonlyargs)]


def _fixture_defs(item: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
    """Return the fixtures of the user, by name, those that others need first; raises ExportError for a plug-in's."""
    found = {}
    for name in item._fixtureinfo.names_closure:
        defs = item._fixtureinfo.name2fixturedefs.get(name)
        if not defs or name in left_out:
            continue
        function = inspect.unwrap(defs[-1].func)
        module = str(getattr(function, "__module__", ""))
        if module.startswith(("_pytest.", "pytest_asyncio")) or name == "request":
            continue
        if name == "flow" and module == "harness.plugin":
            raise ExportError("a generated workflow has no source to export")
        if defs[-1].params:
            raise ExportError(f"the fixture {name!r} has parameters, which has no plain form")
        if "site-packages" in inspect.getfile(function) or module.startswith("harness."):
            raise ExportError(f"the fixture {name!r} is of the plug-in {module}: only pytest and asyncio are there")
        found[name] = defs[-1]
    return found


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _durable_drafts(
    item: Any,
    adapter: Adapter,
    storages: Any,
    target: Target,
    execution: Execution,
    parked: Sequence[tuple[str, str]],
) -> Iterator[Draft]:
    """Yield a test of a durable workflow as source."""
    parts = Parts.of(item, left_out=("durable",))
    tested = Tested(
        title=parts.title,
        source=parts.source,
        function=parts.function,
        variable="durable",
        namespace=item.function.__globals__,
        storages=storages if isinstance(storages, Mapping) else {},
        setup=target.setup,
        roots=parts.roots,
        arguments=parts.arguments,
        before=tuple(parts.before),
        renamed=parts.renamed,
    )
    if any(statement.startswith("async with ") for statement in parts.before):
        raise ExportError("an async fixture with a part after its yield has no plain form beside a workflow")
    yield from adapter.test_drafts(tested, execution, parked)


def write_export(
    item: Any, target: Target, schedule: Schedule | str, *, adapter: Adapter | None, storages: Any, script: bool
) -> str:
    """Execute ``schedule``, and return as JSON what can be made of it: the files to try, or why there is none.

    adapter: of the framework whose workflows the test runs, or None. storages: of its marker.
    """
    try:
        execution, parked = watch(target, schedule)
    except DivergenceError as error:
        said = {"choice": error.choice, "now_s": error.now_s, "recorded": error.recorded, "met": error.met}
        return json.dumps({"diverged": said})
    except UsageError as error:
        return json.dumps({"error": str(error)})
    found: dict[str, Any] = {"rung": execution.rung.label, "broken": bool(execution.violations), "files": []}
    if execution.violations and execution.rung is not Rung.RELAXED:
        why = in_short(explanation_of(target, counterexample_of(execution), title=item.name))
        try:
            if adapter is None:
                drafts = plain_drafts(item, execution, parked)
            else:
                drafts = _durable_drafts(item, adapter, storages, target, execution, parked)
            for draft in drafts:
                text = lay_out(replace(draft, why=why), draft.order, script=script)
                found["files"].append({"text": text, "fails_with": draft.fails_with})
        except ExportError as error:
            found["error"] = str(error)
    return json.dumps(found)


__all__ = ["Parts", "plain_drafts", "write_export"]
