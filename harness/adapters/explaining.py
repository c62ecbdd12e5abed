"""``harness.explain``: why a schedule fails, as values for other tools.

Owns the ways in which a program and a schedule can be named; must not know how explanations are found or shown.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from harness.adapters.targets import load_adapter, scenario_target
from harness.commands.recorded import given_schedule
from harness.commands.tested import explained_test, refuse_options, tested_id
from harness.model.errors import UsageError
from harness.model.explanation import Explanation
from harness.model.rung import Rung
from harness.model.scenario import Scenario
from harness.model.schedule import Schedule, parse_token
from harness.search.explain import explain_schedule, explanation_of
from harness.search.result import Counterexample
from harness.search.target import Target

Subject = Target | Scenario | str | Callable[[], Coroutine[Any, Any, Any]]


def explain(
    subject: Subject,
    schedule: Counterexample | Schedule | str | None = None,
    *,
    storage: str | None = None,
    shapes: bool | None = None,
    faults: Collection[str] | None = None,
    fix: str | None = None,
) -> Explanation:
    """Return why a schedule of a program fails.

    subject: a scenario, its name or its file; the id of a test; an async function without parameters; a ``Target``;
    or a token alone, which carries the name of its scenario or test. schedule: a token, words such as ``hold
    done/save#1.commit until flaky raises``, a ``Schedule`` or a ``Counterexample``. storage, shapes, faults, fix: for
    a scenario and a schedule in words. About a hundred executions are made, and two of them are returned in full: the
    failing one and the nearest that passes. A test is executed by pytest in a process of its own: what it raised is
    an exception of the same name. Raises UsageError for what cannot be run (NothingBrokenError for a schedule that
    passes), TokenError for a damaged token and DivergenceError when the program meets other choices than the recorded
    ones.
    """
    if isinstance(subject, str):
        return _named(subject, schedule, storage=storage, shapes=shapes, faults=faults, fix=fix)
    if schedule is None:
        raise UsageError("explain() needs a schedule, too: a token, words or a counterexample")
    if isinstance(subject, Scenario):
        recorded = _parsed(schedule)
        setup = recorded.setup if isinstance(recorded, Schedule) else {}
        subject = scenario_target(
            subject,
            storage or setup.get("storage") or next(iter(subject.storages)),
            fix=fix or setup.get("fix", ""),
            shapes=setup.get("shapes") == "on" if setup and shapes is None else shapes,
            faults=_faults(setup["faults"]) if "faults" in setup and faults is None else faults,
            rung=recorded.rung if isinstance(recorded, Schedule) else None,
            clock=setup.get("clock"),
        )
    elif not isinstance(subject, Target):
        if not inspect.iscoroutinefunction(subject):
            raise UsageError(f"explain() cannot run {subject!r}: no scenario, target or async function")
        subject = Target(getattr(subject, "__name__", "program"), subject)
    title = title_of(subject)
    if isinstance(schedule, Counterexample):
        return explanation_of(subject, schedule, title=title)
    return explain_schedule(subject, _parsed(schedule), title=title)


def title_of(target: Target) -> str:
    """Return the name of a target, and its storage."""
    storage = target.setup.get("storage", "")
    return f"{target.name} on {storage}" if storage else target.name


def export_line(program: str, reference: str, scenario: Scenario, token: str, *, rung: Rung) -> str:
    """Return the command line that exports a finding, or "" for one that no file can show."""
    if rung is Rung.RELAXED or not hasattr(load_adapter(scenario.adapter), "drafts"):
        return ""
    return f"{program} export {reference} {token} -o test_{scenario.name}.py"


def _named(
    subject: str,
    schedule: Counterexample | Schedule | str | None,
    *,
    storage: str | None,
    shapes: bool | None,
    faults: Collection[str] | None,
    fix: str | None,
) -> Explanation:
    if schedule is None:
        subject, schedule = "", subject
    if not isinstance(schedule, str):
        found = schedule.execution.schedule if isinstance(schedule, Counterexample) else schedule
        schedule = found.token()
    chosen = None if faults is None else tuple(faults)
    if test := tested_id(subject, schedule):
        refuse_options(test, storage=storage, shapes=shapes, faults=chosen, fix=fix)
        return explained_test(test, schedule)
    given = given_schedule(subject, schedule, storage=storage, shapes=shapes, faults=chosen, fix=fix)
    return explain_schedule(given.target, given.schedule, title=title_of(given.target))


def _parsed(schedule: Counterexample | Schedule | str) -> Schedule | str:
    if isinstance(schedule, Counterexample):
        return schedule.execution.schedule
    return parse_token(schedule) if isinstance(schedule, str) and " " not in schedule else schedule


def _faults(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)
