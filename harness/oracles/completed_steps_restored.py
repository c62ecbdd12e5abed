"""completed_steps_restored: what was finished is not executed again.

Owns this one promise; must not know how a framework restores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from harness.model.outcome import Event, Violation


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: a step whose completion was visible before its run ended is not executed again on resume.

    A step is one logical call: its name and arguments. A run may make equal calls: when the runs that it
    resumes completed a call n times, its first n calls must be restored. What a run does after its end
    (an orphan) counts for neither side.
    """
    parents: dict[int, int | None] = {}
    completed: dict[int, Counter[str]] = {}
    calls: dict[int, Counter[str]] = {}
    first: dict[str, Event] = {}
    ended: set[int] = set()
    for event in journal:
        run = event.run
        if event.kind == "run.started":
            parents[run] = event.data.get("resumes")
            completed[run], calls[run] = Counter(), Counter()
        elif event.kind == "run.ended":
            ended.add(run)
        elif run in ended or run not in parents or not event.kind.startswith("step."):
            continue
        elif event.kind == "step.completed":
            completed[run][event.data["call"]] += 1
            first.setdefault(event.data["call"], event)
        elif event.kind in ("step.restored", "step.invoked"):
            call = event.data["call"]
            calls[run][call] += 1
            due = _completed_before(run, call, parents=parents, completed=completed)
            if event.kind == "step.invoked" and calls[run][call] <= due:
                return _violation(journal, again=event, before=first[call])
    return None


def _completed_before(
    run: int, call: str, *, parents: dict[int, int | None], completed: dict[int, Counter[str]]
) -> int:
    """Return how often the runs that ``run`` resumes completed ``call``."""
    total, parent = 0, parents[run]
    while parent is not None:
        total += completed[parent][call]
        parent = parents[parent]
    return total


def _violation(journal: Sequence[Event], *, again: Event, before: Event) -> Violation:
    return Violation(
        "completed_steps_restored",
        f"{again.data['call']} completed in run {before.run} (turn {before.turn}) and was executed again in "
        f"run {again.run} (turn {again.turn}){_fate(journal, before)}",
        again.turn,
    )


def _save_of(journal: Sequence[Event], completion: Event) -> str:
    """Return the name of the save that was called in the turn of ``completion``, or ""."""
    for event in journal:
        if event.kind == "save.called" and event.run == completion.run and event.turn == completion.turn:
            return event.subject
    return ""


def _fate(journal: Sequence[Event], completion: Event) -> str:
    """Say what became of the save that followed ``completion``."""
    save = _save_of(journal, completion)
    for event in journal:
        if event.turn < completion.turn or event.run != completion.run:
            continue
        if event.subject == save and event.kind in ("save.cancelled", "save.raised"):
            verb = event.kind.removeprefix("save.")
            when = "after its commit" if event.data.get("committed") else "before its commit"
            return f"; its {save} was {verb} {when} (turn {event.turn})"
    return ""


def summarize(journal: Sequence[Event]) -> object:
    """Return what a later judgement still depends on: equal summaries, equal judgements of equal futures.

    What follows is judged by how often each run made and completed each call, which runs ended, and, for its
    wording, what became of the save of each completion.
    """
    runs: dict[int, dict[str, object]] = {}
    counts: dict[tuple[int, str, str], int] = {}
    first: dict[str, Event] = {}
    for event in journal:
        if event.kind == "run.started":
            ended = runs.get(event.run, {}).get("ended", False)
            runs[event.run] = {"resumes": event.data.get("resumes"), "ended": ended}
            counts = {key: count for key, count in counts.items() if key[0] != event.run}
        elif event.kind == "run.ended":
            runs.setdefault(event.run, {})["ended"] = True
        elif event.kind.startswith("step.") and event.run in runs and not runs[event.run]["ended"]:
            key = (event.run, event.kind, event.data.get("call", ""))
            counts[key] = counts.get(key, 0) + 1
            if event.kind == "step.completed":
                first.setdefault(event.data["call"], event)
    saves = [(call, event.run, _save_of(journal, event), _fate(journal, event)) for call, event in first.items()]
    found = judge(journal)
    texts = [
        re.sub(r" \(turn \d+\)", "", text)
        for text in ("" if found is None else found.message, *map(str, sorted(saves)))
    ]
    return [sorted(runs.items()), sorted(counts.items()), texts]


PLUGIN = judge
