"""Names of what happens: trace entries as events that mean the same in every execution, and in words.

Owns the wording and how telling an event is; must not know which of them decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.model.explanation import NOISE
from harness.model.outcome import Ending, Turn, Violation

# From this weight on, a turn that ran and nothing that a reader would call an event.
MERE = 8

# What a reader would name first: a failure and the commit of a save, rather than the turns between them. A turn's name
# begins with its task; that of a fact or an arrival begins with what happens.
_TURNS = (("raises ", 0), ("is cancelled", MERE), ("takes turn", MERE), ("returns", MERE))
_WEIGHTS = (
    ("save.committed", 0),
    ("run.cancelled", 0),
    ("run.timeout", 0),
    ("step.failed", 2),
    ("step.completed", 2),
    ("executor.failed", 2),
    ("executor.completed", 2),
    ("save.acknowledged", 3),
    ("save.snapshot", 4),
    ("deliver", 4),
    ("effect", 4),
    ("save.raised", 1),
    ("run.request", 2),
    ("save.called", 5),
    ("run.started", 5),
    ("run.ended", 5),
    ("step.invoked", 6),
    ("executor.invoked", 6),
    ("save.", 7),
)

_VERBS = {
    "save.committed": "commits",
    "save.acknowledged": "is acknowledged",
    "save.called": "is called",
    "save.snapshot": "takes its snapshot",
    "save.cancelled": "is cancelled",
    "save.raised": "raises",
    "step.invoked": "begins",
    "step.completed": "completes",
    "step.failed": "fails",
    "step.restored": "is restored",
    "executor.invoked": "begins",
    "executor.completed": "completes",
    "executor.failed": "fails",
    "effect": "takes effect",
    "run.started": "starts",
    "run.ended": "ends",
    "run.request": "asks its caller",
    "run.cancelled": "is cancelled",
    "run.timeout": "times out",
    "deliver": "arrives",
}


def event_name(turn: Turn) -> str:
    """Return a name for a trace entry that means the same in other schedules of the program, or ""."""
    if turn.what == "waits" or turn.what.startswith("call "):
        return ""
    if turn.lane.startswith("run "):
        return f"{turn.what} ({turn.lane})"
    if turn.lane == "loop":
        return turn.what
    return f"{turn.lane} {turn.what}"


def weight_of(name: str) -> int:
    """Return how telling an event is: 0 for what a reader would name first, up to 9 (``NOISE``)."""
    verb = name.partition(" ")[2]
    turns = (weight for mark, weight in _TURNS if verb.startswith(mark))
    return next(turns, next((weight for mark, weight in _WEIGHTS if name.startswith(mark)), NOISE))


def in_words(name: str) -> str:
    """Return an event's name as a clause, such as ``done/save#1 commits (run 0)``."""
    kind, _, rest = name.partition(" ")
    if kind not in _VERBS:
        return name
    subject, bracket, run = rest.partition(" (run ")
    return f"{subject} {_VERBS[kind]}{bracket}{run}"


def ordinal(number: int) -> str:
    """Return ``2nd`` for 2."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{ends.get(number % 10 if number % 100 not in (11, 12, 13) else 0, 'th')}"


def shows_at(trace: Sequence[Turn], violation: Violation, ending: Ending) -> int:
    """Return the position in ``trace`` from which on ``violation`` shows; what comes from there on is no cause.

    An error that ends the program shows where it was first raised.
    """
    names = _raised(ending.error) if violation.oracle == "assertion" and ending.error is not None else ()
    for position, turn in enumerate(trace):
        if turn.number >= violation.turn or turn.what in names:
            return position
    return len(trace)


def _raised(error: BaseException) -> tuple[str, ...]:
    inner = [name for item in getattr(error, "exceptions", ()) for name in _raised(item)]
    return (f"raises {type(error).__name__}", *inner)


class Namer:
    """Names the entries of one trace, in order: no name comes twice, and a turn without an event has one, too."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()

    def name(self, turn: Turn) -> str:
        """Return the event's name, with ``(2nd)`` behind it when it comes again; "" for a plain callback."""
        name = event_name(turn)
        if turn.lane != "loop" and not turn.lane.startswith("run ") and turn.what != "held":
            self._turns[turn.lane] += 1
            name = name or f"{turn.lane} takes turn {self._turns[turn.lane]}"
        if not name:
            return ""
        self._counts[name] += 1
        count = self._counts[name]
        return name if count == 1 else f"{name} ({ordinal(count)})"
