"""From a schedule on a command line to its explanation, of a scenario or of a test, with the lines that go with it.

Owns what ``explain`` does for one schedule; must not print anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.adapters.explaining import export_line, title_of
from harness.adapters.terminal import program_name
from harness.commands.recorded import given_schedule
from harness.commands.tested import explained_test, refuse_options, tested_id
from harness.model.explanation import Explanation
from harness.model.rung import Rung
from harness.search.explain import explain_schedule


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation, and the command lines that replay and export what it explains. export: "" for none."""

    explanation: Explanation
    replay: str
    export: str


def explained(
    reference: str,
    schedule: str,
    *,
    storage: str | None = None,
    shapes: bool | None = None,
    faults: tuple[str, ...] | None = None,
    fix: str | None = None,
) -> Explained:
    """Return why ``schedule``, a token or words, fails.

    reference: a scenario or a test; "" for a token, which carries it. The rest is for a scenario.
    Raises NothingBrokenError for a schedule that passes, DivergenceError, and UsageError for what cannot be executed.
    """
    program = program_name()
    if test := tested_id(reference, schedule):
        refuse_options(test, storage=storage, shapes=shapes, faults=faults, fix=fix)
        explanation = explained_test(test, schedule)
        token = explanation.schedule.token()
        export = "" if explanation.rung is Rung.RELAXED else f"{program} export {token} -o test_exported.py"
        return Explained(explanation, f"{program} replay {token}", export)
    given = given_schedule(reference, schedule, storage=storage, shapes=shapes, faults=faults, fix=fix)
    explanation = explain_schedule(given.target, given.schedule, title=title_of(given.target))
    token = explanation.schedule.token()
    name = reference or given.scenario.name
    export = export_line(program, name, given.scenario, token, rung=explanation.rung)
    return Explained(explanation, f"{program} replay {name} {token}", export)
