"""An explanation of a test's schedule, on its way from the process in which pytest made it to the one that asked.

Owns the form of the file between the two; must not know how explanations are found or shown.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model.errors import DivergenceError, UsageError
from harness.model.explanation import Explanation, Timeline
from harness.model.schedule import Schedule
from harness.search.explain import explain_schedule
from harness.search.target import Target


class _Told(Exception):
    """An error whose class the other process cannot import; it has the same name and says the same."""

    def __reduce__(self) -> Any:
        return _told, (type(self).__name__, str(self))


def _told(name: str, message: str) -> _Told:
    kind: type[_Told] = type(name, (_Told,), {})
    return kind(message)


def write_explanation(target: Target, schedule: Schedule | str, file: Path, *, title: str) -> None:
    """Explain ``schedule`` and write the explanation, or why there is none, to ``file``."""
    said: Any
    try:
        said = _plain(explain_schedule(target, schedule, title=title))
    except DivergenceError as error:
        said = {"choice": error.choice, "now_s": error.now_s, "recorded": error.recorded, "met": error.met}
    except UsageError as error:
        said = type(error)(str(error))
    file.write_bytes(pickle.dumps(said))


def read_explanation(file: Path) -> Explanation:
    """Return what ``write_explanation`` wrote, or raise what it met. A pickle runs what it holds: no other file."""
    said = pickle.loads(file.read_bytes())
    if isinstance(said, dict):
        raise DivergenceError(**said)
    if isinstance(said, UsageError):
        raise said
    assert isinstance(said, Explanation)
    return said


def _plain(explanation: Explanation) -> Explanation:
    """Return ``explanation`` without objects of the program under test."""
    passing = explanation.passing
    return replace(
        explanation,
        setup=dict(explanation.setup),
        without=dict(explanation.without),
        failing=_without_objects(explanation.failing),
        passing=None if passing is None else _without_objects(passing),
    )


def _without_objects(timeline: Timeline) -> Timeline:
    ending = timeline.ending
    error = None if ending.error is None else _told(type(ending.error).__name__, str(ending.error))
    return replace(timeline, ending=replace(ending, value=None, error=error))
