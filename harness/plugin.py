"""The pytest plugin: the ``interleave`` marker, its options, and scenario files.

Owns the hooks only; loads no third party but pytest until a marked test or a scenario is collected.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MARKER = (
    "interleave(storages=..., budget=..., rung='latency', shapes=True, faults=[...], scheduler='portfolio', "
    "schedule='', oracles=[...], without={oracle: reason}, workflows={...}, adapter='agent-framework', "
    "clock='increasing', allow_real_io=False): run an async test in its default order, then in others, and fail "
    "with the smallest schedule that breaks it."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the group ``interleave``."""
    group = parser.getgroup("interleave", "orders of asyncio programs (harness)")
    group.addoption("--interleave-budget", type=_budget, metavar="N", help="Executions per test or scenario storage.")
    group.addoption("--interleave-seed", type=int, metavar="N", help="Seed of the random phases (default 0).")
    group.addoption("--interleave-replay", metavar="SCHEDULE", help="Execute only this token or these words.")
    group.addoption(
        "--interleave-no-store", action="store_true", help="Do not run what failed before first, and keep no failures."
    )
    group.addoption("--interleave-html", metavar="DIR", help="Write one HTML page per failure to this folder.")
    group.addoption("--interleave-export", metavar="FILE", help="With --interleave-replay: for `harness export`.")
    group.addoption("--interleave-explain", metavar="FILE", help="With --interleave-replay: for `harness explain`.")
    parser.addini("interleave_store", "Folder of failing schedules; empty for none.", default=".harness")
    parser.addini("interleave_scenarios", "Folders whose files hold scenarios.", type="args", default=["scenarios"])


def _budget(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("a budget is at least 1")
    return value


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse a damaged token or a folder that is none before anything runs."""
    config.addinivalue_line("markers", MARKER)
    if folder := config.getoption("--interleave-html"):
        from harness.adapters.jinja2.folder import PageFolder
        from harness.model.errors import UsageError

        try:
            PageFolder(config.invocation_params.dir / folder)
        except UsageError as error:
            raise pytest.UsageError(f"--interleave-html: {error}") from error
    token = config.getoption("--interleave-replay")
    if token:
        from harness.model.errors import TokenError
        from harness.model.schedule import parse_token

        try:
            if " " not in token:  # a schedule in words is looked up while the program runs
                parse_token(token)
        except TokenError as error:
            raise pytest.UsageError(f"--interleave-replay: {error}") from error


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files."""
    folders = parent.config.getini("interleave_scenarios")
    if file_path.suffix != ".py" or file_path.parent.name not in folders or file_path.name.startswith(("_", "test_")):
        return None
    if file_path.name == "conftest.py" or "scenario" not in file_path.read_text(encoding="utf-8"):
        return None
    from harness.adapters.pytest_scenarios import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Generator[None, Any, Any]:
    """Turn marked async tests into interleaved ones, whatever other plugins made of them."""
    nodes = yield
    if not isinstance(nodes, list):
        return nodes
    return [_interleaved(node) for node in nodes]


def _interleaved(node: Any) -> Any:
    if not isinstance(node, pytest.Function) or node.get_closest_marker("interleave") is None:
        return node
    from harness.adapters.pytest_items import InterleavedFunction

    return InterleavedFunction.from_function(node)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Let the async fixtures of an interleaved test run on its own loop, once per execution."""
    if request.node.get_closest_marker("interleave") is None or fixturedef.scope != "function":
        return (yield)
    from harness.adapters.pytest_fixtures import deferred

    original = fixturedef.func
    fixturedef.func = deferred(original)
    try:
        return (yield)
    finally:
        fixturedef.func = original


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``durable`` once per storage."""
    marker = metafunc.definition.get_closest_marker("interleave")
    if marker is None or "durable" not in metafunc.fixturenames:
        return
    storages = marker.kwargs.get("storages", ["memory"])
    names = list(storages)
    metafunc.parametrize("durable", names, indirect=True, ids=names)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what became of the schedules that failed before."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    lines = [
        line
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, line in getattr(report, "user_properties", ())
        if name == "interleave_store"
    ]
    if lines:
        terminalreporter.section("interleave: what failed before")
        for line in dict.fromkeys(lines):
            terminalreporter.line(line)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for report in terminalreporter.stats.get("failed", ()):
            _annotate(terminalreporter, report)


def _annotate(terminalreporter: Any, report: Any) -> None:
    """Let GitHub mark the line that decides that a test fails."""
    found = {name.removeprefix("interleave_"): text for name, text in getattr(report, "user_properties", ())}
    if "oracle" not in found:
        return
    from harness.report.annotations import github_annotation

    terminalreporter.ensure_newline()
    terminalreporter.line(github_annotation(f"{report.nodeid}: {found['oracle']}", found))


@pytest.fixture
def flow(request: pytest.FixtureRequest) -> Any:
    """Return a workflow that the search makes up, with its message and its expected result.

    Only for tests that are marked ``interleave``, which may say ``workflows={"max_siblings": 3, ...}``: the options
    of ``harness.adapters.agent_framework.generated.generate``.
    """
    marker = request.node.get_closest_marker("interleave")
    if marker is None:
        pytest.fail("the fixture 'flow' needs @pytest.mark.interleave", pytrace=False)
    from harness.adapters.pytest_fixtures import FlowSlot

    return FlowSlot(**marker.kwargs.get("workflows", {}))


@pytest.fixture
def durable(request: pytest.FixtureRequest) -> Any:
    """Run and resume workflows on the storage of this test; made anew for each execution.

    Only for tests that are marked ``interleave``.
    """
    if request.node.get_closest_marker("interleave") is None:
        pytest.fail("the fixture 'durable' needs @pytest.mark.interleave", pytrace=False)
    from harness.adapters.pytest_fixtures import DurableSlot

    return DurableSlot(getattr(request, "param", "memory"))
