"""Outcomes of executions that are many: what they broke, what a judgement depends on, and what they leave.

Owns the wording without turns; must not know which schedules are tried.
"""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from harness.model.outcome import Execution
from harness.runtime.leftovers import collect


@contextlib.contextmanager
def quiet_ends() -> Iterator[None]:
    """Keep what executions leave that end in the middle of things from warning where it happens to be collected.

    Tasks of the clean-up are cancelled before they begin. What is left is collected by the session, in between.
    """
    collecting = gc.isenabled()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        gc.disable()
        try:
            yield
        finally:
            collect()  # as soon as it is enabled, it would run anywhere
            if collecting:
                gc.enable()


def outcome_of(execution: Execution) -> tuple[tuple[str, str], ...]:
    """Return what an execution broke: oracle and message, without numbers of turns."""
    return tuple((violation.oracle, without_turns(violation.message)) for violation in execution.violations)


def without_turns(message: str) -> str:
    """Return ``message`` without the numbers of turns, in which equal outcomes differ."""
    return re.sub(r"after \d+ turns", "after too many turns", re.sub(r" ?\(turn \d+\)", "", message))


def summary_of(judge: Any) -> Callable[[Any], Any]:
    """Return what a judgement still depends on, as a function of the journal so far.

    An oracle's module may define ``summarize``; without it, it is every event in its order.
    """
    own = getattr(sys.modules.get(getattr(judge, "__module__", "")), "summarize", None)
    return own if callable(own) else every_event


def every_event(journal: Any) -> Any:
    """Return the events without turns and times."""
    return [(event.kind, event.run, event.subject, event.data) for event in journal]
