"""What a replay has to show: why a schedule that was given fails, or how it goes when it passes.

Owns the choice between the two; must not know how either is found or shown.
"""

from __future__ import annotations

from dataclasses import replace

from harness.model.explanation import Explanation
from harness.model.outcome import Violation
from harness.model.schedule import Schedule
from harness.search.explain import explanation_of
from harness.search.readable import in_readable_form, parse_readable
from harness.search.recording import Labelled
from harness.search.result import Counterexample
from harness.search.target import Target
from harness.search.timeline import mark, timeline_of
from harness.search.witness import witnessed


def replayed(target: Target, schedule: Schedule | str, *, title: str) -> Explanation:
    """Execute a schedule, as recorded or in words, and return why it fails; without a violation when it passes.

    The schedule is one that was replayed before, so that it fits the program. A hold that ends with an event is
    shown as it goes; what decides is looked for with the op held to the end, and is not known when that passes.
    """
    labels = Labelled({} if isinstance(schedule, str) else {item.index: item.value for item in schedule.decisions})
    with target.open() as runner:
        if isinstance(schedule, str):
            execution, witness = witnessed(runner, parse_readable(schedule))
            text = schedule
        else:
            execution, witness = witnessed(runner, labels, discipline=schedule.discipline, rung=schedule.rung)
            text = in_readable_form(execution.schedule.decisions, labels.names)
    broken = execution.violations[0] if execution.violations else Violation("", "", execution.turns)
    timeline = timeline_of(execution, witness, text=text, oracle=broken.oracle)
    if not execution.violations:
        return Explanation(title=title, setup=target.setup, violation=broken, promise="", failing=timeline)
    found = Counterexample(execution, broken, 0, "", replays=True, text=text)
    explanation = explanation_of(target, found, title=title)
    orderings = () if explanation.deciding is None else explanation.deciding.orderings
    failing = mark(timeline, [(item.first.name, item.second.name) for item in orderings])
    if explanation.failing.fails:
        return replace(explanation, failing=failing)
    return replace(
        explanation, failing=failing, unexplained="it fails only when what is held is let go at the right moment"
    )
