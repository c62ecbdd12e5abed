"""What tests and scenarios share under pytest: the options, the search, and how a failure is shown.

Owns the outcome of an item; must not know what is executed.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from harness.adapters.portfolio import DEFAULT, make_phases
from harness.adapters.pytest_failures import InterleavingFailure, failure_repr
from harness.model.errors import DivergenceError, HarnessError, UsageError
from harness.model.explanation import Explanation
from harness.model.outcome import Execution
from harness.model.rung import Rung
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
from harness.search.target import Target

DEFAULT_BUDGET = 100
STORE_PROPERTY = "interleave_store"


class SearchItem(pytest.Item):
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
