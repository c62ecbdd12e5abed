"""Deciding orderings: a separation of the evidence that executions support which were made to refute it.

Owns the choice, and what is executed to check it; must not know how evidence is gathered first.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from harness.model.explanation import Deciding, Moment, Ordering, Timeline
from harness.model.rung import Rung
from harness.search.events import MERE, in_words, ordinal, weight_of
from harness.search.evidence import Evidence
from harness.search.readable import parse_readable
from harness.search.separate import Pair, Sample, emptiness, separations

# A separation is believed when so many more executions agree: drawn with other seeds, and aimed at each half.
HELD_OUT = 10
AIMED = 6
# Candidates that were refuted before it is said that nothing separates.
ROUNDS = 8


def decide(evidence: Evidence, timelines: Sequence[Timeline]) -> Deciding | None:
    """Return the smallest separation that more executions support, made after it was chosen."""
    source = random.Random("explain 1")
    for _ in range(ROUNDS):
        chosen = _smallest(evidence.samples)
        if chosen is None:
            return None
        pairs, alike = chosen
        aimed = _verify(evidence, timelines, pairs, source, alike=alike)
        samples = [sample for sample in evidence.samples if sample.alike or not alike]
        if all(sample.agrees(pairs) for sample in samples):
            return Deciding(
                tuple(Ordering(*(Moment(in_words(name), _place(samples, name)) for name in pair)) for pair in pairs),
                failing=sum(sample.fails for sample in samples),
                passing=sum(not sample.fails for sample in samples),
                aimed=aimed,
                alike=alike,
            )
    return None


def _smallest(samples: Sequence[Sample]) -> tuple[tuple[Pair, ...], bool] | None:
    """Return the smallest separation, and whether it is one of executions that are alike only.

    Of equally small ones, what says more goes first, then that of telling events before that of mere turns, and then
    what holds of all executions.
    """
    found = []
    for alike in (False, True):
        some = [sample for sample in samples if sample.alike or not alike]
        for pairs in islice(separations(some), 1):
            passing = [sample for sample in some if not sample.fails]
            empty = max(emptiness(pair, passing) for pair in pairs)
            mere = any(weight_of(name) >= MERE for pair in pairs for name in pair)
            found.append((len(pairs), empty, mere, alike, pairs))
    if not found:
        return None
    _, _, _, alike, pairs = min(found, key=lambda item: item[:4])
    return pairs, alike


def _verify(
    evidence: Evidence, timelines: Sequence[Timeline], pairs: Sequence[Pair], source: random.Random, *, alike: bool
) -> int:
    """Execute other seeds, and schedules that keep to ``pairs`` or reverse one; return how many of these did so."""
    for _ in range(HELD_OUT):
        evidence.draw(source, alike=alike)
    aims = [[(second, first) for first, second in pairs], *([pair] for pair in pairs)]
    hit = 0
    for held in aims:
        clauses = [_hold(timelines, what, until=until) for what, until in held]
        text = "; ".join(clause for clause in clauses if clause)
        for _ in range(AIMED if text else 0):
            sample = evidence.draw(source, alike=alike, holds=parse_readable(text))
            hit += all(
                sample.positions.get(until, 1 << 30) <= sample.positions.get(what, 1 << 30) for what, until in held
            )
    return hit


def _hold(timelines: Sequence[Timeline], name: str, *, until: str) -> str:
    """Return the clause that holds what leads to the event ``name``, or "" where nothing does that can be held."""
    for timeline in timelines:
        row = next((index for index, row in enumerate(timeline.rows) if row.name == in_words(name)), -1)
        held = _held_by(timeline, row) if row >= 0 else ""
        if held:
            return f"hold {held} until {in_words(until)}"
    return ""


def _held_by(timeline: Timeline, index: int) -> str:
    """Return the op, or in relaxed schedules the turn, without which row ``index`` would not have come."""
    causes = {item.woken: item.cause for item in timeline.wake_ups}
    rows = timeline.rows
    while index >= 0 and rows[index].kind == "fact":
        index -= 1  # a fact stands behind the turn in which it was noted
    relaxed = timeline.schedule.rung is Rung.RELAXED
    while index >= 0:
        row = rows[index]
        if row.op >= 0:
            name = timeline.ops[row.op].name
            same = [op.name for op in timeline.ops[: row.op + 1]].count(name)
            return name if same == 1 else f"{name} ({ordinal(same)})"
        if relaxed and row.kind == "turn":
            same = sum(other.kind == "turn" and other.lane == row.lane for other in rows[: index + 1])
            name = timeline.lanes[row.lane].path
            return name if same == 1 else f"{name} ({ordinal(same)})"
        index = causes.get(index, -1)
    return ""


def _place(samples: Sequence[Sample], name: str) -> str:
    return next((sample.places[name] for sample in samples if sample.places.get(name)), "")
