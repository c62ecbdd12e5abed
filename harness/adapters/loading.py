"""Scenarios by file, by name, or by ``module:attribute``.

Owns the import of scenario files, and the one line that says why one does not load or cannot run here; must not run
anything.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from packaging.requirements import InvalidRequirement, Requirement

from harness.model.errors import UsageError
from harness.model.registry import unknown
from harness.model.scenario import Scenario

FOLDER = Path("scenarios")


def load_scenarios(reference: str, *, folder: Path = FOLDER) -> list[Scenario]:
    """Return the scenarios that ``reference`` names, in the order of their definition.

    reference: a file, a file and a name (``file.py::name``), the name of a scenario in ``folder``, or
    ``module:attribute``. Raises UsageError when there is none, or when the file does not import.
    """
    place, _, name = reference.partition("::")
    if place.endswith(".py"):
        found = scenarios_in(Path(place))
        return _named(found, name, where=place) if name else found
    if ":" in reference:
        return [_attribute(reference)]
    return [find_scenario(reference, folder=folder)]


def load_with_variants(reference: str, *, folder: Path = FOLDER) -> list[tuple[str, Scenario]]:
    """Return what ``reference`` names and, behind each, its variants from the same folder; each with what names it.

    Raises UsageError also when there is no such variant.
    """
    file = Path(reference.partition("::")[0])
    beside = file.parent if file.suffix == ".py" else folder
    found: list[tuple[str, Scenario]] = []
    for scenario in load_scenarios(reference, folder=folder):
        found.append((reference, scenario))
        for name in scenario.variants:
            (variant,) = load_scenarios(f"{beside / name}.py::{name}")
            found.append((f"{beside / name}.py", variant))
    return found


def find_scenario(name: str, *, folder: Path = FOLDER) -> Scenario:
    """Return the scenario called ``name`` in ``folder``; raises UsageError with the nearest names."""
    direct = folder / f"{name}.py"
    files = [direct] if direct.is_file() else scenario_files(folder)
    known: list[str] = []
    for file in files:
        for scenario in scenarios_in(file):
            if scenario.name == name:
                return scenario
            known.append(scenario.name)
    raise unknown("scenario", name=name, known=known)


def scenario_files(folder: Path) -> list[Path]:
    """Return the files of ``folder`` that may hold scenarios, by name."""
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_")) if folder.is_dir() else []


def scenarios_in(file: Path) -> list[Scenario]:
    """Import ``file`` and return its scenarios; raises UsageError when it has none or does not import."""
    if not file.is_file():
        raise UsageError(f"no such scenario file: {file}")
    module = import_file(file)
    found = [value for value in vars(module).values() if isinstance(value, Scenario)]
    if not found:
        raise UsageError(f"{file} holds no scenario (decorate an async function with @harness.scenario)")
    return found


def missing_requirement(scenario: Scenario) -> str:
    """Say which distribution that ``scenario`` requires is not installed here, or return "".

    Its package is one if it states a range of it. Raises UsageError for a requirement that is none.
    """
    package = (scenario.package,) if scenario.affected else ()
    for text in (*package, *scenario.requires):
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            raise UsageError(f"scenario {scenario.name!r}: requires={text!r} is no requirement") from None
        try:
            installed = version(wanted.name)
        except PackageNotFoundError:
            return f"needs {text}, which is not installed"
        if not wanted.specifier.contains(installed, prereleases=True):
            return f"needs {text}, but {installed} is installed"
    return ""


def import_file(file: Path) -> ModuleType:
    """Import a file under a name of its own, once per process."""
    path = file.resolve()
    name = f"harness_scenario_{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", "") == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # agent-framework warns of experimental features at import
            spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{file} does not import: {_one_line(error, path)}") from error
    return module


def _one_line(error: Exception, path: Path) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" + (f" (line {line})" if line else "")


def _named(found: list[Scenario], name: str, *, where: str) -> list[Scenario]:
    chosen = [scenario for scenario in found if scenario.name == name]
    if not chosen:
        raise unknown(f"scenario in {where}", name=name, known=[scenario.name for scenario in found])
    return chosen


def _attribute(reference: str) -> Scenario:
    module_name, _, attribute = reference.partition(":")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(f"module {module_name!r} does not import: {type(error).__name__}: {error}") from error
    value = getattr(module, attribute, None)
    if not isinstance(value, Scenario):
        raise UsageError(f"{reference!r} is no scenario")
    return value
