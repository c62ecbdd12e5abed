"""From a scenario to a target: storages, patches and oracles by name.

Owns the composition of a framework's adapter with a search target; must not know the command line.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from harness.adapters.loading import missing_requirement
from harness.model.errors import MissingPackageError, UsageError
from harness.model.outcome import Execution
from harness.model.registry import load_plugin, plugin_names, unknown
from harness.model.rung import Rung
from harness.model.scenario import Scenario
from harness.report.export.layout import Draft, Tested
from harness.runtime.execution import Session
from harness.runtime.texts import one_name
from harness.search.target import Oracle, Patch, Target

_ORACLES = "harness.oracles"


class Adapter(Protocol):
    """What a target needs of a framework. name: of the framework, for messages."""

    name: str

    def storages(self) -> tuple[str, ...]:
        """Return the names of the registered storages."""
        ...

    def fixes(self) -> tuple[str, ...]:
        """Return the names of the fix candidates."""
        ...

    def make_storage(self, name: str, directory: Path) -> Any:
        """Return a new, empty storage."""
        ...

    def fix(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that applies a fix candidate."""
        ...

    def observe(self, notes: Collection[str] = ()) -> contextlib.AbstractContextManager[None]:
        """Return a context manager under which runs write to the journal; ``notes`` asks for more than the usual."""
        ...

    def faults(self) -> tuple[str, ...]:
        """Return what may happen to a run when it is switched on."""
        ...

    def durable(self, storage: Any, *, shapes: bool, faults: Collection[str] = (), notes: Collection[str] = ()) -> Any:
        """Return what a program runs and resumes workflows with."""
        ...

    def drafts(
        self,
        scenario: Scenario,
        setup: Mapping[str, str],
        execution: Execution,
        parked: Sequence[tuple[str, str]],
    ) -> Iterator[Draft]:
        """Yield a failing execution as the source of a plain program, the plainest first.

        parked: the name and the source line of each op. Raises ExportError for what has no plain form.
        """
        ...

    def test_drafts(self, tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]]) -> Iterator[Draft]:
        """Yield the same of a test that takes ``durable``."""
        ...


def load_adapter(name: str) -> Adapter:
    """Return the adapter called ``name``; raises UsageError when its framework is not installed."""
    try:
        module = importlib.import_module(f"harness.adapters.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        raise UsageError(f"the adapter {name!r} needs {error.name!r}, which is not installed") from error
    except ImportError as error:
        raise UsageError(f"the adapter {name!r} does not import with what is installed: {error}") from error
    return cast(Adapter, module.PLUGIN)


def require_storage(adapter: Adapter, name: str) -> None:
    """Load what a registered storage needs, before any clock is patched; raises UsageError when it cannot be had.

    An adapter whose storages all come with its framework has no ``require``.
    """
    require = getattr(adapter, "require", None)
    if require is not None:
        require(name)


def usable_storages(scenario: Scenario) -> tuple[list[str], list[str]]:
    """Return the storages of ``scenario`` that can be had here, and a line for each that cannot.

    Raises MissingPackageError when there is none.
    """
    adapter = load_adapter(scenario.adapter)
    usable: list[str] = []
    missing: list[str] = []
    for name, factory in scenario.storages.items():
        try:
            if factory is None and name in adapter.storages():
                require_storage(adapter, name)
            usable.append(name)
        except MissingPackageError as error:
            missing.append(str(error))
    if not usable and missing:
        raise MissingPackageError(missing[0])
    return usable, missing


def scenario_target(
    scenario: Scenario,
    storage: str,
    *,
    fix: str = "",
    shapes: bool | None = None,
    faults: Collection[str] | None = None,
    rung: Rung | None = None,
    clock: str | None = None,
) -> Target:
    """Return the target of ``scenario`` on ``storage``; what is None is as the scenario says.

    Raises UsageError for a storage, a fix, a fault or an oracle that does not exist, or that needs a package which
    is not installed, and when what the scenario requires is not installed.
    """
    if missing := missing_requirement(scenario):
        raise UsageError(f"scenario {scenario.name!r} {missing}")
    adapter = load_adapter(scenario.adapter)
    names = list(scenario.storages)
    names += [name for name in adapter.storages() if name not in names]
    if storage not in names:
        raise unknown("storage", name=storage, known=names)
    factory = scenario.storages.get(storage)
    if factory is None:
        require_storage(adapter, storage)
    if fix and fix not in adapter.fixes():
        raise unknown("fix", name=fix, known=adapter.fixes())
    use_shapes = scenario.shapes if shapes is None else shapes
    use_faults = tuple(scenario.faults if faults is None else faults)
    for fault in use_faults:
        if fault not in adapter.faults():
            raise unknown("fault", name=fault, known=adapter.faults())
    clock = scenario.clock if clock is None else clock
    oracles, without = judging_on(adapter, scenario.oracles, without=scenario.without)
    notes = needs_of(oracles)
    room = StorageRoom(adapter, storage, factory)

    async def program() -> Any:
        durable = adapter.durable(room.fresh_storage(), shapes=use_shapes, faults=use_faults, notes=notes)
        value = await scenario.program(durable)
        if notes:
            await durable.finish()
        return value

    program.__name__ = scenario.name
    setup = {
        "scenario": scenario.name,
        "storage": storage,
        "shapes": "on" if use_shapes else "off",
        "clock": clock,
    }
    if fix:
        setup["fix"] = fix
    if use_faults:
        setup["faults"] = ",".join(use_faults)
    patches: list[Patch] = [lambda _: room.open(), lambda _: adapter.observe(notes), clock_patch(clock)]
    if fix:
        patches.append(lambda _: adapter.fix(fix))
    return Target(
        name=scenario.name,
        program=program,
        setup=setup,
        judges=load_oracles(oracles),
        without=without,
        rung=scenario.rung if rung is None else rung,
        patches=tuple(patches),
    )


def judging(names: Iterable[str], *, without: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the oracles that judge; ``all`` stands for every registered one.

    Raises UsageError for one that does not exist, also among those that are switched off.
    """
    known = plugin_names(_ORACLES)
    off = [name.replace("_", "-") for name in without]
    chosen = [name.replace("_", "-") for given in names for name in (known if given == "all" else (given,))]
    for name in (*chosen, *off):
        if name not in known:
            raise unknown("oracle", name=name, known=(*known, "all"))
    return tuple(name for name in dict.fromkeys(chosen) if name not in off)


def judging_on(
    adapter: Adapter, names: Iterable[str], *, without: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of the oracles that judge on ``adapter``, and those that do not, with the reasons.

    What an adapter ``refuses`` is left out of ``all``. Raises UsageError where it is named.
    """
    names = list(names)
    refused: dict[str, str] = getattr(adapter, "refuses", dict)()
    asked = judging([name for name in names if name != "all"], without=without)
    for name in asked:
        if name in refused:
            raise UsageError(f"the oracle {name!r} cannot judge {adapter.name}: {refused[name]}")
    off = {**without, **({name: reason for name, reason in refused.items() if "all" in names})}
    return judging(names, without=off), off


def needs_of(oracles: Iterable[str]) -> tuple[str, ...]:
    """Return what the journal must hold for ``oracles`` beyond the usual: the union of their ``NEEDS``."""
    found: set[str] = set()
    for name in oracles:
        module = importlib.import_module(f"{_ORACLES}.{name.replace('-', '_')}")
        found.update(getattr(module, "NEEDS", ()))
    return tuple(sorted(found))


def load_oracles(names: Iterable[str]) -> tuple[Oracle, ...]:
    """Return the oracles called ``names``; raises UsageError for one that does not exist."""
    return tuple(cast(Oracle, load_plugin(_ORACLES, name=name, kind="oracle")) for name in names)


def clock_patch(model: str) -> Patch:
    """Return a patch under which the process's clocks follow the virtual clock of each execution."""

    @contextlib.contextmanager
    def patch(session: Session) -> Iterator[None]:
        from harness.adapters.freezegun import following_clock  # imported late: its import patches nothing, but costs

        with following_clock(model) as clock:
            session.on_begin.append(clock.begin)
            yield

    return patch


class StorageRoom:
    """A directory for the length of a search, with one empty folder per execution."""

    def __init__(self, adapter: Adapter, name: str, factory: Callable[[Any], Any] | None) -> None:
        self._adapter = adapter
        self._name = name
        self._factory = factory
        self._root = Path()
        self._last: tuple[Any, Path] | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Make the directory, and remove it at the end."""
        with tempfile.TemporaryDirectory(prefix="harness-") as root, one_name(root):
            self._root = Path(root)
            try:
                yield
            finally:
                self._forget()

    def fresh_storage(self) -> Any:
        """Return a new storage for the execution that begins, and close the one before."""
        self._forget()
        folder = self._root / "execution"
        folder.mkdir(exist_ok=True)
        storage = self._factory(folder) if self._factory else self._adapter.make_storage(self._name, folder)
        self._last = storage, folder
        return storage

    def _forget(self) -> None:
        if self._last is None:
            return
        storage, folder = self._last
        self._last = None
        close = getattr(storage, "close", None)
        if callable(close) and not inspect.iscoroutinefunction(close):
            close()  # one that waits cannot: the loop that it knows is closed
        # Emptied, not removed: on some file systems removing a folder costs as much as a run.
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
