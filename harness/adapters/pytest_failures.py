"""How pytest shows a failing schedule: a report as it is, and the program's own traceback under it.

Owns the exception that carries a report and its form on a terminal; must not know what a report says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr

from harness.adapters.terminal import write
from harness.report.lines import Line, Span, plain
from harness.runtime.ops import is_plumbing


class InterleavingFailure(Exception):
    """A report to show as it is, without a traceback of the harness. summary: it in one line."""

    def __init__(self, report: Sequence[Line] | str, error: BaseException | None = None, *, summary: str = "") -> None:
        self.lines = [(Span(line),) for line in report.splitlines()] if isinstance(report, str) else list(report)
        super().__init__(plain(self.lines))
        self.error = error
        self.summary = summary or plain(self.lines[:1])


class FailureRepr(TerminalRepr):
    """A report as pytest shows it: with colours on a terminal, as plain text in files and in JUnit's XML.

    reprcrash: the place and the one line that pytest's summary and JUnit's message show.
    """

    def __init__(self, lines: Sequence[Line], own: TerminalRepr | None, crash: ReprFileLocation) -> None:
        self._lines = lines
        self._own = own  # the program's own traceback
        self.reprcrash = crash

    def toterminal(self, tw: Any) -> None:
        """Write the report, and the program's own traceback under it."""
        write(tw, self._lines)
        if self._own is not None:
            tw.line()
            self._own.toterminal(tw)


def failure_repr(failure: InterleavingFailure, location: tuple[str, int | None, str]) -> FailureRepr:
    """Return what pytest shows of ``failure``. location: of the test, as pytest has it."""
    own: Any = None
    if failure.error is not None and failure.error.__traceback__ is not None:
        info = pytest.ExceptionInfo.from_exception(failure.error)
        info.traceback = info.traceback.filter(lambda entry: not is_plumbing(entry.frame.f_globals["__name__"]))
        own = info.getrepr(style="short")
    path, number, _ = location
    return FailureRepr(failure.lines, own, ReprFileLocation(path, (number or 0) + 1, failure.summary))
