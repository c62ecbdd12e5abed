"""Where the deviations of a schedule show: the entry of a trace that each brought about, or one of its own.

Owns the choice between the two; must not know how rows are worded or shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.choice import Decision
from harness.model.outcome import Deviated, Execution, Turn
from harness.search.readable import clause_of
from harness.search.witness import Seen, Witness

Entries = list[tuple[Seen, Turn]]

# The lane of an entry that stands for a choice: made by the schedule between two turns, or in the course of one.
CHOICE, CHOICE_INSIDE = "choice", "choice in a turn"
_FACTS = {"cancelled": "run.cancelled", "timed out": "run.timeout", "crashed": "run.ended"}


def with_choices(entries: Entries, execution: Execution, witness: Witness) -> tuple[Entries, list[Seen | None]]:
    """Return ``entries`` with one for each deviation that has none, and of each deviation the entry that shows it.

    A hold shows where its op is parked or arrives, what goes first where it goes, and a cancellation, a timeout and a
    crash where they happen. An await shape, the failure of a save, a generated program and what else leaves no fact
    of its own get an entry where they were chosen. None for what comes after the last entry that was kept.
    """
    shown: list[Seen | None] = []
    own: list[tuple[int, Seen]] = []
    for decision, made in zip(execution.schedule.decisions, execution.deviated, strict=False):
        seen = _entry_of(decision, made, entries, execution, witness)
        if seen is None and made.position <= len(entries):
            before = entries[made.position - 1][1] if made.position else Turn(0, 0.0, "", "")
            lane = CHOICE_INSIDE if made.inside else CHOICE
            seen = Seen(Turn(before.number, before.now_s, lane, clause_of(decision)))
            own.append((made.position, seen))
        shown.append(seen)
    found: Entries = []
    for position in range(len(entries) + 1):
        found += [(seen, seen.entry) for place, seen in own if place == position and seen.entry is not None]
        found += entries[position : position + 1]
    return found, shown


def _entry_of(
    decision: Decision, made: Deviated, entries: Sequence[tuple[Seen, Turn]], execution: Execution, witness: Witness
) -> Seen | None:
    """Return the entry that a deviation brought about, if there is one that says so."""
    after = entries[made.position :]
    if decision.kind == "hold" and decision.index in witness.deviates:
        number = witness.deviates[decision.index]
        parked = witness.ops[number].parked
        if parked is not None and parked.entry is not None and parked.entry.what == "waits":
            return parked if parked.entry.lane == witness.ops[number].owner else _arrival(number, entries)
        return _arrival(number, entries)
    if decision.kind == "hold":
        return next((seen for seen, entry in after[:1] if entry.what == "held"), None)
    if decision.kind in ("lane", "arrival"):
        return next((seen for seen, _ in after[:1]), None)
    if decision.kind == "fault" and decision.label.startswith("run "):
        return _struck(decision, after, execution)
    return None


def _arrival(number: int, entries: Sequence[tuple[Seen, Turn]]) -> Seen | None:
    return next((seen for seen, _ in entries if seen.op == number), None)


def _struck(decision: Decision, after: Sequence[tuple[Seen, Turn]], execution: Execution) -> Seen | None:
    """Return the entry at which something happened to a run from outside."""
    how = decision.option.rpartition(": ")[2].partition(" at moment ")[0]
    fact = _FACTS.get(how.removesuffix(" twice"), "")
    if fact == "run.ended" and not any(
        event.kind == fact and event.data["how"] == how and f"run {event.run}" == decision.label
        for event in execution.journal
    ):
        return None
    return next(
        (seen for seen, entry in after if fact and entry.lane == decision.label and entry.what.startswith(f"{fact} ")),
        None,
    )
