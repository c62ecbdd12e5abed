"""The function of a scenario as source, with what an export says of it first.

Owns where a scenario's source is; must not know what is exported.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path

from harness.model.scenario import Scenario
from harness.report.export.layout import Tested
from harness.report.export.source import ExportError, Source


def tested_scenario(scenario: Scenario, setup: Mapping[str, str]) -> Tested:
    """Return the function of a scenario. setup: of a schedule. Raises ExportError where its file does not have it."""
    file = inspect.getsourcefile(scenario.program) or ""
    source = Source(Path(file).read_text(encoding="utf-8"))
    function = source.definitions.get(scenario.program.__name__)
    if not isinstance(function, ast.AsyncFunctionDef):
        raise ExportError("the scenario's function was not found in its file")
    title = scenario.summary.removesuffix(".") + "."
    if scenario.reference:
        title = f"{scenario.reference}: {title[:1].lower()}{title[1:]}"
    return Tested(
        title=title,
        source=source,
        function=function,
        variable=function.args.args[0].arg,
        namespace=vars(inspect.getmodule(scenario.program)),
        storages=scenario.storages,
        setup=setup,
    )
