"""What the pytest plugin collects from test files: async tests that are executed under many schedules.

Owns the life of fixtures across executions and the options of the marker; must not know how schedules are found.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.tmpdir import tmppath_result_key

from harness.adapters.portfolio import DEFAULT
from harness.adapters.pytest_fixtures import DurableSlot, Resolver
from harness.adapters.pytest_search import DEFAULT_BUDGET, SearchItem
from harness.adapters.targets import (
    StorageRoom,
    clock_patch,
    judging_on,
    load_adapter,
    load_oracles,
    needs_of,
    require_storage,
)
from harness.model.errors import UsageError
from harness.model.registry import unknown
from harness.model.rung import Rung
from harness.model.schedule import Schedule
from harness.search.target import Patch, Target

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


class InterleavedFunction(SearchItem, pytest.Function):
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
        resolver = Resolver(make_durable)
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
