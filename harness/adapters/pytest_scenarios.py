"""What the pytest plugin collects from files of scenarios.

Owns one item per scenario and storage, and what is a known open bug; must not know how schedules are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.adapters.explaining import export_line
from harness.adapters.loading import missing_requirement, scenarios_in
from harness.adapters.pytest_failures import InterleavingFailure
from harness.adapters.pytest_search import SearchItem
from harness.adapters.targets import (
    scenario_target,
)
from harness.model.errors import MissingPackageError, UsageError
from harness.model.scenario import Scenario
from harness.search.result import Counterexample


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


class ScenarioItem(SearchItem):
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
