"""agent-framework: workflows that run and resume under the controlled loop.

Owns what the harness knows of agent-framework; must not know searches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from harness.adapters.agent_framework.durable import FAULTS, Durable
from harness.adapters.agent_framework.observe import observed
from harness.model.outcome import Execution
from harness.model.registry import load_plugin, plugin_names
from harness.model.scenario import Scenario
from harness.report.export.layout import Draft, Tested

_STORAGES = "harness.adapters.agent_framework.storages"
_FIXES = "harness.adapters.agent_framework.fixes"


class AgentFramework:
    """What a search needs of a framework; one instance, ``PLUGIN``."""

    name = "agent-framework"

    def storages(self) -> tuple[str, ...]:
        """Return the names of the registered storages."""
        return plugin_names(_STORAGES)

    def fixes(self) -> tuple[str, ...]:
        """Return the names of the fix candidates that can be switched on."""
        return plugin_names(_FIXES)

    def require(self, name: str) -> None:
        """Load what storage ``name`` needs; raises UsageError when there is none or a package is missing."""
        load_plugin(_STORAGES, name=name, kind="storage")

    def make_storage(self, name: str, directory: Path) -> Any:
        """Return a new, empty storage; raises UsageError for an unknown name."""
        return cast(Any, load_plugin(_STORAGES, name=name, kind="storage"))(directory)

    def fix(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager that applies a fix candidate to the installed framework."""
        apply = cast(Callable[[], AbstractContextManager[None]], load_plugin(_FIXES, name=name, kind="fix"))
        return apply()

    def observe(self, notes: Collection[str] = ()) -> AbstractContextManager[None]:
        """Return a context manager under which workflows write to the loop's journal."""
        return observed(notes)

    def faults(self) -> tuple[str, ...]:
        """Return what may happen to a run when it is switched on."""
        return FAULTS

    def durable(
        self, storage: Any, *, shapes: bool, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> Durable:
        """Return what a program runs and resumes workflows with."""
        return Durable(storage, shapes=shapes, faults=faults, notes=notes)

    def drafts(
        self,
        scenario: Scenario,
        setup: Mapping[str, str],
        execution: Execution,
        parked: Sequence[tuple[str, str]],
    ) -> Iterator[Draft]:
        """Yield a failing execution as the source of a plain program, the plainest first."""
        from harness.adapters.agent_framework.export import drafts  # only an export needs it

        return drafts(scenario, setup, execution, parked)

    def test_drafts(self, tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]]) -> Iterator[Draft]:
        """Yield a failing execution of a test as the source of a plain one."""
        from harness.adapters.agent_framework.export import Finding, drafts_of

        return drafts_of(Finding(tested, execution, parked))


PLUGIN = AgentFramework()
