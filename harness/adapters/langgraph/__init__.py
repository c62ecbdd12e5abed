"""LangGraph: graphs that run and resume on its checkpointers under the controlled loop.

Owns what the harness knows of LangGraph; must not know searches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from harness.adapters import plain_runs
from harness.adapters.langgraph.durable import Durable
from harness.adapters.langgraph.export import GraphCalls
from harness.adapters.langgraph.observe import observed
from harness.adapters.runs import FAULTS
from harness.model.outcome import Execution
from harness.model.registry import load_plugin, plugin_names
from harness.model.scenario import Scenario
from harness.report.export.layout import Draft, Tested

_STORAGES = "harness.adapters.langgraph.storages"
_FIXES = "harness.adapters.langgraph.fixes"


class LangGraph:
    """What a search needs of a framework; one instance, ``PLUGIN``."""

    name = "langgraph"

    def storages(self) -> tuple[str, ...]:
        """Return the names of the registered storages."""
        return plugin_names(_STORAGES)

    def fixes(self) -> tuple[str, ...]:
        """Return the names of the fix candidates that can be switched on."""
        return plugin_names(_FIXES)

    def make_storage(self, name: str, directory: Path) -> Any:
        """Return a new, empty storage; raises UsageError for an unknown name."""
        return cast(Any, load_plugin(_STORAGES, name=name, kind="storage"))(directory)

    def fix(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager that applies a fix candidate to the installed framework."""
        apply = cast(Callable[[], AbstractContextManager[None]], load_plugin(_FIXES, name=name, kind="fix"))
        return apply()

    def observe(self, notes: Collection[str] = ()) -> AbstractContextManager[None]:
        """Return a context manager under which graphs write to the loop's journal."""
        return observed(notes)

    def refuses(self) -> dict[str, str]:
        """Return the oracles that cannot judge graphs, with the reasons."""
        return {
            "decision-stable": "nothing but the graph itself sees what a node returned or raised",
            "guard-released": "one graph may run many times at once",
        }

    def faults(self) -> tuple[str, ...]:
        """Return what may happen to a run when it is switched on."""
        return FAULTS

    def durable(
        self, storage: Any, *, shapes: bool, faults: Collection[str] = (), notes: Collection[str] = ()
    ) -> Durable:
        """Return what a program runs and resumes graphs with."""
        return Durable(storage, shapes=shapes, faults=faults, notes=notes)

    def drafts(
        self,
        scenario: Scenario,
        setup: Mapping[str, str],
        execution: Execution,
        parked: Sequence[tuple[str, str]],
    ) -> Iterator[Draft]:
        """Yield a failing execution as the source of a plain program."""
        yield from plain_runs.drafts(GraphCalls(), scenario, setup, execution, parked)

    def test_drafts(self, tested: Tested, execution: Execution, parked: Sequence[tuple[str, str]]) -> Iterator[Draft]:
        """Yield the same of a test that takes ``durable``."""
        yield from plain_runs.test_drafts(GraphCalls(), tested, execution, parked)


PLUGIN = LangGraph()
