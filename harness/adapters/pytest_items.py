"""What the pytest plugin collects: interleaved tests and scenarios.

Owns the life of fixtures across executions and the outcome of a test; must not know how schedules are found.
"""

from __future__ import annotations

import functools
import inspect
import os
import shlex
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from _pytest.tmpdir import tmppath_result_key
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.adapters.explaining import export_line
from harness.adapters.loading import missing_requirement, scenarios_in
from harness.adapters.portfolio import DEFAULT, make_phases
from harness.adapters.pytest_failures import InterleavingFailure, failure_repr
from harness.adapters.targets import (
    StorageRoom,
    clock_patch,
    judging_on,
    load_adapter,
    load_oracles,
    needs_of,
    require_storage,
    scenario_target,
)
from harness.model.errors import DivergenceError, HarnessError, MissingPackageError, UsageError
from harness.model.explanation import Explanation
from harness.model.outcome import Execution
from harness.model.registry import unknown
from harness.model.rung import Rung
from harness.model.scenario import Scenario
from harness.model.schedule import Schedule, parse_token
from harness.report.annotations import properties
from harness.report.lines import PIPED, Line, Span, labelled
from harness.report.table import table
from harness.report.text import failure_report, one_line
from harness.search.explain import explanation_of, plain_timeline
from harness.search.portfolio import search
from harness.search.readable import schedule_text
from harness.search.replay import replay, replay_text
from harness.search.replayed import replayed
from harness.search.result import Counterexample, SearchResult
from harness.search.store import Store, Stored
from harness.search.target import Patch, Target

DEFAULT_BUDGET = 100
STORE_PROPERTY = "interleave_store"
_OPTIONS = {
    "adapter": "agent-framework",
    "allow_real_io": False,
    "budget": None,
    "clock": "increasing",
    "faults": (),
    "oracles": ("completed-steps-restored",),
    "rung": "latency",
    "schedule": "",
    "scheduler": DEFAULT,
    "shapes": True,
    "storages": (),
    "without": {},
    "workflows": {},
}


class _Item(pytest.Item):
    """What tests and scenarios share: the options, the search, and how a failure is shown."""

    def look(self, target: Target, *, budget: int, scheduler: str = DEFAULT) -> SearchResult:
        """Search ``target`` as the command line says."""
        option = self.config.getoption
        seed = option("--interleave-seed")
        if seed is None and option("--hypothesis-seed", default=None) is None:
            seed = 0
        phases = make_phases(
            scheduler,
            rung=target.rung,
            seed=seed,
            key=f"{self.nodeid} {target.rung.label}",
            database=self.config.rootpath / ".hypothesis" / "harness",
        )
        stored = self._stored(target)
        result = search(
            target,
            phases=phases if stored is None else [stored, *phases],
            budget=option("--interleave-budget") or budget,
        )
        if stored is not None:
            found = result.counterexample
            if found is None or not self.expects(found):
                stored.close(result)
            # as a property of the report, so that it comes from a worker process, too
            self.user_properties += [(STORE_PROPERTY, line) for line in [*stored.lines(), *self._warnings]]
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def expects(self, found: Counterexample) -> bool:
        """Return whether ``found`` is an expected failure, which is not kept."""
        return False

    def _stored(self, target: Target) -> Stored | None:
        """Return the phase of what failed before, or None where the store is switched off."""
        folder = self.config.getini("interleave_store")
        if not folder or self.config.getoption("--interleave-no-store"):
            return None
        self._warnings: list[str] = []
        store = Store(self.config.rootpath / folder, warn=self._warnings.append)
        return Stored(store, target, where=self.place)

    @property
    def place(self) -> str:
        """Where this item is, for who reads the store."""
        return self.nodeid

    def recorded(self, written: str = "") -> Schedule | str | None:
        """Return the schedule to replay instead of searching, as a token's or in words, or None.

        written: the schedule in words that a marker carries.
        """
        token = self.config.getoption("--interleave-replay") or written
        if not token or " " in token:
            return token or None
        schedule = parse_token(token)
        if schedule.setup.get("test") != self.nodeid:
            pytest.skip(f"--interleave-replay is of {schedule.setup.get('test') or schedule.setup.get('scenario')}")
        return schedule

    def run_again(self, target: Target, schedule: Schedule | str) -> None:
        """Replay ``schedule``; fail as the recorded execution did."""
        words = schedule if isinstance(schedule, str) else schedule_text(schedule.decisions)
        try:
            outcome = replay_text(target, schedule) if isinstance(schedule, str) else replay(target, schedule)
        except DivergenceError as error:
            raise InterleavingFailure(str(error)) from None
        execution = outcome.execution
        if not execution.violations:
            return
        first = execution.violations[0]
        title = f"{self.name}: {first.oracle} is violated (rung {execution.rung.label}), replayed"
        lines: list[Line] = [(Span(title, "title"),)]
        lines += [*labelled("got", first.message, width=self.width, style="bad", limit=8)]
        lines += [*labelled("schedule", words, width=self.width, style="key"), ()]
        lines += table(plain_timeline(execution, text=words), width=self.width, limit=30 - len(lines))
        if self.config.getoption("--interleave-html"):
            given = schedule if isinstance(schedule, str) else schedule.token()
            line = f"pytest '{self.nodeid}' --interleave-replay {shlex.quote(given)}"
            lines += self._page(replayed(target, schedule, title=self.name), replay=line)
        raise InterleavingFailure(lines, _error_of(execution))

    def fail(self, found: Counterexample, target: Target) -> None:
        """Fail with the report of ``found``."""
        explanation = explanation_of(target, found, title=self.name)
        token = found.execution.schedule.token()
        line = f"pytest '{self.nodeid}' --interleave-replay {token}"
        path, number, _ = self.location
        self.user_properties += properties(explanation, fallback=f"{self.config.rootpath / path}:{(number or 0) + 1}")
        export = self.export_line(found)
        report = failure_report(explanation, replay=line, export=export, width=self.width)
        report += self._page(explanation, replay=line, export=export)
        raise InterleavingFailure(report, _error_of(found.execution), summary=one_line(explanation))

    def export_line(self, found: Counterexample) -> str:
        """Return the command line that exports ``found``, or "" where no file can show it."""
        token = found.execution.schedule.token()
        return "" if found.rung is Rung.RELAXED else f"harness export {token} -o test_exported.py"

    @property
    def width(self) -> int:
        """The columns of pytest's terminal, or 100 where it writes to a file."""
        writer = self.config.get_terminal_writer() if self.config.pluginmanager.has_plugin("terminalreporter") else None
        return writer.fullwidth if writer is not None and writer._file.isatty() else PIPED

    def _page(self, explanation: Explanation, *, replay: str, export: str = "") -> list[Line]:
        """Write the page of a failure where ``--interleave-html`` asks for it; return a line of the report."""
        folder = self.config.getoption("--interleave-html")
        if not folder:
            return []
        from harness.adapters.jinja2.folder import PageFolder

        try:
            file = PageFolder(self.config.invocation_params.dir / folder).write(
                explanation, replay=replay, export=export
            )
        except UsageError as error:
            return [(Span(f"  {error}"),)]
        shown = (
            folder if Path(folder).is_absolute() else os.path.relpath(file.parent, self.config.invocation_params.dir)
        )
        return [(Span("  page: ", "dim"), Span(os.path.join(shown, file.name), "command"))]

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Show a report as it is, with the program's own traceback under it."""
        if isinstance(excinfo.value, InterleavingFailure):
            return failure_repr(excinfo.value, self.location)
        if isinstance(excinfo.value, HarnessError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def _error_of(execution: Execution) -> BaseException | None:
    return execution.ending.error if execution.ending.kind == "raised" else None


# -- tests ---------------------------------------------------------------------------------------------


class FlowSlot:
    """Stands for ``flow`` until an execution begins, and draws it. options: of the grammar."""

    def __init__(self, **options: Any) -> None:
        self.options = options


class DurableSlot:
    """Stands for ``durable`` until an execution begins. storage: its name."""

    def __init__(self, storage: str) -> None:
        self.storage = storage


class Deferred:
    """An async fixture that has not run yet; each execution runs it on its own loop."""

    def __init__(self, func: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.func = func
        self.arguments = arguments


def deferred(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``func``, or for an async fixture function one that returns a Deferred."""
    if not (inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func)):
        return func
    return functools.wraps(func)(functools.partial(_defer, func))


def _defer(func: Callable[..., Any], **arguments: Any) -> Deferred:
    return Deferred(func, arguments)


class InterleavedFunction(_Item, pytest.Function):
    """An async test that is executed under many schedules, with fresh function fixtures each time."""

    @classmethod
    def from_function(cls, function: pytest.Function) -> InterleavedFunction:
        """Return the interleaved form of a collected test function."""
        node = cls.from_parent(
            function.parent,
            name=function.name,
            callspec=getattr(function, "callspec", None),
            callobj=function.obj,
            fixtureinfo=function._fixtureinfo,
            keywords=function.keywords,
            originalname=function.originalname,
        )
        node.own_markers = function.own_markers
        return node

    def runtest(self) -> None:
        """Search, or replay the schedule that was asked for."""
        options = self._options()
        target = self._target(options)
        schedule = self.recorded(options["schedule"])
        if schedule is not None and (file := self.config.getoption("--interleave-export")):
            self._export(target, schedule, Path(file), options=options)
            return
        if schedule is not None and (file := self.config.getoption("--interleave-explain")):
            from harness.adapters.pytest_explain import write_explanation  # only an explanation needs it

            write_explanation(target, schedule, Path(file), title=self.name)
            return
        if schedule is not None:
            self.run_again(target, schedule)
            return
        budget = options["budget"] or DEFAULT_BUDGET
        result = self.look(target, budget=budget, scheduler=options["scheduler"])
        if result.counterexample is not None:
            self.fail(result.counterexample, target)

    def _export(self, target: Target, schedule: Schedule | str, file: Path, *, options: dict[str, Any]) -> None:
        """Write what ``harness export`` makes a file of."""
        from harness.adapters.pytest_export import write_export  # only an export needs it

        slot = self._slot()
        adapter = None if slot is None else load_adapter(options["adapter"])
        text = write_export(
            self, target, schedule, adapter=adapter, storages=options["storages"], script=file.suffix == ".script"
        )
        file.write_text(text, encoding="utf-8")

    def _slot(self) -> DurableSlot | None:
        """Return what stands for ``durable``, if the test takes it."""
        return next((value for value in self.funcargs.values() if isinstance(value, DurableSlot)), None)

    def _options(self) -> dict[str, Any]:
        marker = self.get_closest_marker("interleave")
        given = {} if marker is None else marker.kwargs
        if marker is not None and marker.args:
            raise UsageError("interleave takes keyword arguments only")
        for name in given:
            if name not in _OPTIONS:
                raise unknown("option of interleave", name=name, known=_OPTIONS)
        if not inspect.iscoroutinefunction(self.function):
            raise UsageError(f"{self.name} is marked interleave but is not an async function")
        options = {**_OPTIONS, **given}
        if options["budget"] is not None and not (isinstance(options["budget"], int) and options["budget"] > 0):
            raise UsageError(f"interleave(budget={options['budget']!r}): a budget is a whole number, at least 1")
        return options

    def _target(self, options: dict[str, Any]) -> Target:
        try:
            rung = Rung.parse(options["rung"]) if isinstance(options["rung"], str) else Rung(options["rung"])
        except ValueError:
            raise unknown("rung", name=str(options["rung"]), known=[item.label for item in Rung]) from None
        patches: list[Patch] = [clock_patch(options["clock"])]
        slot = self._slot()
        make_durable: Callable[[], Any] | None = None
        oracles: tuple[str, ...] = ()
        without = dict(options["without"])
        setup = {"test": self.nodeid, "clock": options["clock"]}
        if slot is not None:
            adapter = load_adapter(options["adapter"])
            storages = options["storages"]
            factory = storages.get(slot.storage) if isinstance(storages, dict) else None
            if factory is None and slot.storage not in adapter.storages():
                raise unknown("storage", name=slot.storage, known=adapter.storages())
            if factory is None:
                require_storage(adapter, slot.storage)
            room = StorageRoom(adapter, slot.storage, factory)
            oracles, without = judging_on(adapter, options["oracles"], without=without)
            notes = needs_of(oracles)
            patches = [lambda _: room.open(), lambda _: adapter.observe(notes), *patches]
            setup["storage"] = slot.storage
            faults = tuple(options["faults"])
            make_durable = lambda: adapter.durable(  # noqa: E731
                room.fresh_storage(), shapes=options["shapes"], faults=faults, notes=notes
            )
        return Target(
            name=self.name,
            program=functools.partial(self._program, make_durable),
            setup=setup,
            judges=load_oracles(oracles),
            without=without,
            rung=rung,
            patches=tuple(patches),
            allow_real_io=options["allow_real_io"],
        )

    def _program(self, make_durable: Callable[[], Any] | None) -> Any:
        """Set up fresh fixtures and return the coroutine of one execution."""
        self._refresh_fixtures()
        body: Any = self._body(make_durable)
        body.__name__ = self.originalname or self.name
        return body

    async def _body(self, make_durable: Callable[[], Any] | None) -> None:
        resolver = _Resolver(make_durable)
        values = {name: await resolver.value(given) for name, given in self.funcargs.items()}
        try:
            arguments = {name: values[name] for name in self._fixtureinfo.argnames}
            await self.obj(**arguments)
            await resolver.finish()
        finally:
            await resolver.close()

    def _refresh_fixtures(self) -> None:
        """Tear down and set up the function fixtures: state of one execution must not reach the next."""
        # tmp_path looks up the outcome of the test when it is torn down
        self.stash.setdefault(tmppath_result_key, {})
        request: Any = self._request
        for fixturedef in reversed(list(request._fixture_defs.values())):
            if fixturedef.scope == "function" and hasattr(fixturedef, "finish"):
                fixturedef.finish(request)
        self._initrequest()
        self._request._fillfixtures()


class _Resolver:
    """Runs the deferred fixtures of one execution, each once, and finishes them in reverse order."""

    def __init__(self, make_durable: Callable[[], Any] | None) -> None:
        self._make_durable = make_durable
        self._values: list[tuple[Deferred, Any]] = []
        self._generators: list[Any] = []
        self._durables: list[Any] = []

    async def value(self, given: Any) -> Any:
        """Return what a fixture stands for."""
        if isinstance(given, DurableSlot) and self._make_durable is not None:
            self._durables.append(self._make_durable())
            return self._durables[-1]
        if isinstance(given, FlowSlot):
            from harness.adapters.agent_framework.generated import draw_flow

            return draw_flow(**given.options)
        if not isinstance(given, Deferred):
            return given
        for known, value in self._values:
            if known is given:
                return value
        arguments = {name: await self.value(argument) for name, argument in given.arguments.items()}
        made = given.func(**arguments)
        if inspect.isasyncgen(made):
            value = await anext(made)
            self._generators.append(made)
        else:
            value = await made
        self._values.append((given, value))
        return value

    async def finish(self) -> None:
        """Let what the oracles asked for be noted at the end of the test."""
        for durable in self._durables:
            await durable.finish()

    async def close(self) -> None:
        """Run the part after the ``yield`` of async generator fixtures."""
        while self._generators:
            await anext(self._generators.pop(), None)


# -- scenarios -----------------------------------------------------------------------------------------


class ScenarioFile(pytest.File):
    """A file of scenarios."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one item per scenario and storage."""
        try:
            found = scenarios_in(self.path)
        except UsageError as error:
            raise self.CollectError(str(error)) from error
        for scenario in found:
            for storage in scenario.storages:
                yield ScenarioItem.from_parent(
                    self, name=f"{scenario.name}[{storage}]", scenario=scenario, storage=storage
                )


class ScenarioItem(_Item):
    """One scenario on one storage, as it is.

    A bug that is known to be open is an expected failure, and strict: the day it is fixed upstream, this
    item fails and says so.
    """

    def __init__(self, *, scenario: Scenario, storage: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario
        self.storage = storage
        self._open_bug = False

    def runtest(self) -> None:
        """Search, and compare with what the installed release is known to do."""
        if missing := missing_requirement(self.scenario):
            pytest.skip(missing)
        try:
            target = scenario_target(self.scenario, self.storage, shapes=False)
        except MissingPackageError as error:
            pytest.skip(str(error))
        target = target.with_setup(test=self.nodeid)
        schedule = self.recorded()
        if schedule is not None:
            self.run_again(target, schedule)
            return
        installed = installed_version(self.scenario.package)
        open_bug = is_affected(self.scenario, installed) and self._breaks_here()
        self._open_bug = open_bug
        found = self.look(target, budget=self.scenario.budget).counterexample
        what = f"{self.scenario.reference or self.scenario.name} in {self.scenario.package} {installed}"
        if found is None:
            if open_bug:
                raise InterleavingFailure(
                    f"[XPASS(strict)] {what} was not found on {self.storage!r}: if it is fixed upstream, narrow "
                    f"affected={self.scenario.affected!r} in {self.path.name}"
                )
            return
        if self.expects(found):
            pytest.xfail(f"known open bug: {what}")
        self.fail(found, target)

    def export_line(self, found: Counterexample) -> str:
        """Return the command line that exports ``found``, or "" where there is none."""
        token = found.execution.schedule.token()
        return export_line("harness", self.place, self.scenario, token, rung=found.rung)

    def expects(self, found: Counterexample) -> bool:
        """Return whether ``found`` is the known bug."""
        return self._open_bug and found.replays

    @property
    def place(self) -> str:
        """The scenario's file and name."""
        return f"{self.nodeid.partition('::')[0]}::{self.scenario.name}"

    def _breaks_here(self) -> bool:
        return self.scenario.breaks_on is None or self.storage in self.scenario.breaks_on

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return where the scenario is defined."""
        return self.path, self.scenario.program.__code__.co_firstlineno - 1, self.name


def installed_version(package: str) -> str:
    """Return the installed version of a distribution; raises UsageError when there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise UsageError(f"{package} is not installed") from None


def is_affected(scenario: Scenario, installed: str) -> bool:
    """Return whether ``installed`` is in the affected range; raises UsageError for a range that is none."""
    if not scenario.affected:
        return False
    try:
        return SpecifierSet(scenario.affected).contains(installed, prereleases=True)
    except InvalidSpecifier:
        raise UsageError(f"scenario {scenario.name!r}: affected={scenario.affected!r} is no version range") from None
