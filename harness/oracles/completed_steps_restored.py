"""completed_steps_restored: what was finished is not executed again.

Owns this one promise; must not know how a framework restores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from harness.model.outcome import Event, Violation

_INVOKED = ("step.invoked", "executor.invoked")
_COMPLETED = ("step.completed", "executor.completed")


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: a step whose completion was visible before its run ended is not executed again on resume.

    A step is one logical call: its name and arguments. An executor of a graph workflow is one too, with its
    message: where a superstep that failed is meant to run as a whole again, a scenario switches this off. A run
    may make equal calls: when the runs that it resumes completed a call n times, its first n calls must be
    restored. What a run does after its end (an orphan) counts for neither side. When the process died, a
    completion counts if a save that was called at or after it was acknowledged: before that, nobody could
    promise it. A save that names the calls that it ``covers`` stands for these only; one that ``supersedes``
    their own saves promises them when it is called, for what it replaces is to be durable by then. A run that was
    resumed from another checkpoint than the latest may execute again what came after that checkpoint.
    """
    parents: dict[int, int | None] = {}
    completed: dict[int, Counter[str]] = {}
    calls: dict[int, Counter[str]] = {}
    first: dict[str, Event] = {}
    ended: set[int] = set()
    for index, event in enumerate(journal):
        run = event.run
        if event.kind == "run.started":
            parents[run] = event.data.get("resumes") if event.data.get("latest", True) else None
            completed[run], calls[run] = Counter(), Counter()
        elif event.kind == "run.ended":
            ended.add(run)
            if event.data.get("how") == "crashed":
                completed[run] = _promised(journal[:index], run)
        elif run in ended or run not in parents:
            continue
        elif event.kind in _COMPLETED:
            completed[run][event.data["call"]] += 1
            first.setdefault(event.data["call"], event)
        elif event.kind == "step.restored" or event.kind in _INVOKED:
            call = event.data["call"]
            calls[run][call] += 1
            due = _completed_before(run, call, parents=parents, completed=completed)
            if event.kind in _INVOKED and calls[run][call] <= due:
                return _violation(journal, again=event, before=first[call])
    return None


def _promised(journal: Sequence[Event], run: int) -> Counter[str]:
    """Return the completions of ``run`` that an acknowledged save covers, or one that takes their place."""
    called: dict[str, int] = {}
    covered = -1
    named: Counter[str] = Counter()
    for index, event in enumerate(journal):
        if event.run != run or event.kind not in ("save.called", "save.acknowledged"):
            continue
        covers = event.data.get("covers")
        if event.kind == "save.called":
            called[event.subject] = index
            named |= Counter(covers if event.data.get("supersedes") else ())
        elif covers is None:
            covered = max(covered, called[event.subject])
        else:
            named |= Counter(covers)
    done = (event for event in journal[: covered + 1] if event.run == run and event.kind in _COMPLETED)
    named |= Counter(event.data["call"] for event in done)
    return named


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

    What follows is judged by how often each run made and completed each call, which runs ended and how, what the
    saves of a run promise should it die, and, for its wording, what became of the save of each completion.
    """
    runs: dict[int, dict[str, object]] = {}
    counts: dict[tuple[int, str, str], int] = {}
    first: dict[str, Event] = {}
    for index, event in enumerate(journal):
        if event.kind == "run.started":
            ended = runs.get(event.run, {}).get("ended", False)
            parent = event.data.get("resumes") if event.data.get("latest", True) else None
            runs[event.run] = {"resumes": parent, "ended": ended}
            counts = {key: count for key, count in counts.items() if key[0] != event.run}
        elif event.kind == "run.ended":
            runs.setdefault(event.run, {})["ended"] = True
            if event.data.get("how") == "crashed":
                promised = _promised(journal[:index], event.run)
                counts = {key: count for key, count in counts.items() if key[:2] != (event.run, "completed")}
                counts |= {(event.run, "completed", call): count for call, count in promised.items()}
        elif (
            event.kind in (*_COMPLETED, *_INVOKED, "step.restored")
            and event.run in runs
            and not runs[event.run]["ended"]
        ):
            kind = "completed" if event.kind in _COMPLETED else "called"
            key = (event.run, kind, event.data["call"])
            counts[key] = counts.get(key, 0) + 1
            if kind == "completed":
                first.setdefault(event.data["call"], event)
    saves = [(call, event.run, _save_of(journal, event), _fate(journal, event)) for call, event in first.items()]
    found = judge(journal)
    texts = [
        re.sub(r" \(turn \d+\)", "", text)
        for text in ("" if found is None else found.message, *map(str, sorted(saves)))
    ]
    saves_left = [_saves_of(journal, run) for run in sorted(runs) if not runs[run]["ended"]]
    return [sorted(runs.items()), sorted(counts.items()), saves_left, texts]


def _saves_of(journal: Sequence[Event], run: int) -> list[object]:
    """Return what ``_promised`` may still make of a run: what it promises now, and what saves under way would add."""
    completed: Counter[str] = Counter()
    under_way: dict[str, list[tuple[str, int]]] = {}
    for event in journal:
        if event.run != run:
            continue
        if event.kind in _COMPLETED:
            completed[event.data["call"]] += 1
        elif event.kind == "save.called":
            under_way[event.subject] = sorted(completed.items())
        elif event.kind == "save.acknowledged":
            under_way.pop(event.subject, None)
    return [sorted(_promised(journal, run).items()), sorted(under_way.items())]


PLUGIN = judge
