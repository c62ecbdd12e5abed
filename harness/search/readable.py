"""Readable schedules: deviations in words, such as ``hold done/save#1.commit until flaky raises``.

Owns the grammar, parsing and following; must not know tokens.

A schedule is clauses separated by ``;``. An op is named by the end of its path; ``(2nd)`` behind it means the
second op of that name. What a clause names is looked up while the program runs, so a schedule survives edits elsewhere.

    hold OP                    it waits until the others have nothing left to do
    hold OP until EVENT        ... or until something happened, such as ``flaky raises``
    hold SAVE.commit           what a save waits for before it commits, whatever its storage calls that
    let in OP early            it arrives while others are still ready
    SUBJECT waits SHAPE        the await shape of a save
    SUBJECT OPTION             a fault, such as ``run 0 cancelled at moment 3``
    sets of tasks in order N   how sets of tasks iterate
    the program's NAME is X    what a program that the search makes up looks like
    default order              no deviation
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from harness.model.choice import EARLY, HOLD, ChoicePoint, Decision
from harness.model.errors import UsageError
from harness.model.outcome import Turn
from harness.search.events import event_name, in_words, ordinal

DEFAULT = "default order"
COMMIT = ".commit"
# The await shape of a save whose commit is to be held, where the storage's own save waits for nothing.
WAITING_SHAPE = "latency-before"
_HOLD = re.compile(r"hold (?P<op>\S.*?)(?: until (?P<until>.+))?")
_EARLY = re.compile(r"let in (?P<op>\S.*?) early")
_SHAPE = re.compile(r"(?P<op>\S+) waits (?P<option>\S+)")
_ORDER = re.compile(r"sets of tasks in order (?P<option>\d+)")
_PROGRAM = re.compile(r"the program's (?P<op>.+) is (?P<option>\S+)")
_NUMBERED = re.compile(r"(?P<name>.+) \((?P<ordinal>\d+)(?:st|nd|rd|th)\)")


@dataclass(slots=True)
class Clause:
    """One deviation. kind: of the choice point. op: the end of a name. ordinal: which one of that name."""

    text: str
    kind: str
    op: str
    ordinal: int = 1
    option: str = ""
    until: str = ""
    used: bool = False


@dataclass(slots=True)
class Readable:
    """A scheduler that follows a readable schedule; give its ``heed`` to the loop for the ``until`` clauses."""

    clauses: list[Clause]
    met: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    held: list[tuple[Clause, Any]] = field(default_factory=list)
    saving: list[str] = field(default_factory=list)  # saves that were called and did not commit yet
    _counts: Counter[str] = field(default_factory=Counter)

    def choose(self, point: ChoicePoint, /) -> int:
        """Return what the first unused clause that names this choice point says, or 0."""
        if point.kind in ("order", "program"):
            clause = self._first(point.kind, "" if point.kind == "order" else str(point.subject))
            return 0 if clause is None else self._option(clause, point)
        name = str(point.subject)
        if point.kind == "hold":
            self._counts[name] += 1
            self.met.append(name)
            clause = self._named(name) or self._committing(name)
            if clause is None:
                return 0
            clause.used = True
            if clause.option == "early":
                return EARLY if len(point.enabled) > EARLY else 0
            self.held.append((clause, point.subject))
            return HOLD
        if point.kind not in ("shape", "fault"):
            return 0
        self.met += [f"{name} {option}" for option in list(point.enabled[1:4])]
        for clause in self.clauses:
            if not clause.used and clause.kind in (point.kind, "fault") and _ends(name, clause.op):
                return self._option(clause, point)
            if not clause.used and clause.kind == "fault" and clause.text.startswith(f"{name} "):
                clause.option = clause.text[len(name) + 1 :]
                return self._option(clause, point)
        if point.kind == "shape" and WAITING_SHAPE in point.enabled and self._holds_a_commit():
            return point.enabled.index(WAITING_SHAPE)
        return 0

    def heed(self, turn: Turn) -> None:
        """Note what happened, and let go what was held until then."""
        name = event_name(turn)
        if not name:
            return
        self.events.append(in_words(name))
        kind, _, rest = name.partition(" ")
        save = rest.partition(" (run ")[0]
        if kind == "save.called":
            self.saving.append(save)
        elif kind.startswith("save.") and kind != "save.snapshot" and save in self.saving:
            self.saving.remove(save)
        for clause, op in tuple(self.held):
            if clause.until and _happens(in_words(name), clause.until):
                op.rank = 0
                self.held.remove((clause, op))

    def check(self) -> None:
        """Raise UsageError for a clause that named nothing, with the nearest names."""
        for clause in self.clauses:
            wanted, known = clause.op or clause.text, self.met
            if clause.used and clause.until and any(held is clause for held, _ in self.held):
                wanted, known = clause.until, self.events
            elif clause.used:
                continue
            names = list(dict.fromkeys(known))
            near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.3) or names[:3]
            raise UsageError(
                f"{clause.text!r}: nothing is called {wanted!r} here; nearest: {', '.join(near) or 'none'}"
            )

    def _first(self, kind: str, op: str) -> Clause | None:
        return next((item for item in self.clauses if not item.used and item.kind == kind and item.op == op), None)

    def _named(self, name: str) -> Clause | None:
        for clause in self.clauses:
            fits = clause.kind == "hold" and not clause.used and _ends(name, clause.op)
            # the n-th op of exactly this name, or simply the first that the end of the name fits
            if fits and clause.ordinal == self._counts[name]:
                return clause
        return None

    def _committing(self, name: str) -> Clause | None:
        """Return the clause that holds the commit of the save that waits for the op ``name`` now."""
        owner = name.rpartition("/")[0]
        for save in self.saving:
            commit = f"{save}{COMMIT}"
            if not _ends(owner, save.rpartition("/")[0]):
                continue
            self.met.append(commit)
            for clause in self.clauses:
                if clause.kind == "hold" and not clause.used and _ends(commit, clause.op):
                    return clause
        return None

    def _holds_a_commit(self) -> bool:
        shaped = any(clause.kind == "shape" for clause in self.clauses)
        return not shaped and any(clause.op.endswith(COMMIT) for clause in self.clauses if clause.kind == "hold")

    def _option(self, clause: Clause, point: ChoicePoint) -> int:
        for value in range(1, len(point.enabled)):
            if str(point.enabled[value]) == clause.option:
                clause.used = True
                return value
        return 0


def parse_readable(text: str) -> Readable:
    """Parse a readable schedule; raises UsageError for a clause that is none."""
    clauses = []
    for part in (part.strip() for part in text.split(";")):
        if not part or part == DEFAULT:
            continue
        clauses.append(_parse(part))
    return Readable(clauses)


def _parse(part: str) -> Clause:
    if match := _HOLD.fullmatch(part):
        name, ordinal = _numbered(match["op"])
        return Clause(part, "hold", name, ordinal, until=match["until"] or "")
    if match := _EARLY.fullmatch(part):
        name, ordinal = _numbered(match["op"])
        return Clause(part, "hold", name, ordinal, option="early")
    if match := _ORDER.fullmatch(part):
        return Clause(part, "order", "", option=match["option"])
    if match := _PROGRAM.fullmatch(part):
        return Clause(part, "program", match["op"], option=match["option"])
    if match := _SHAPE.fullmatch(part):
        return Clause(part, "shape", match["op"], option=match["option"])
    subject, _, option = part.partition(" ")
    if option:
        return Clause(part, "fault", subject, option=option)
    raise UsageError(f"no clause of a schedule: {part!r} (such as 'hold done/save#1.commit until flaky raises')")


def _numbered(name: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(name)
    return (match["name"], int(match["ordinal"])) if match else (name, 1)


def _ends(name: str, wanted: str) -> bool:
    """Return whether ``wanted`` is ``name`` or the end of it at a ``/``."""
    return name == wanted or name.endswith("/" + wanted)


def _happens(event: str, wanted: str) -> bool:
    """Return whether ``event`` is ``wanted``, more of it, or has it at the end of a path."""
    words = wanted.split()
    subject, _, rest = event.partition(" ")
    return bool(words) and _ends(subject, words[0]) and rest.startswith(" ".join(words[1:]))


def in_readable_form(decisions: Any, names: list[tuple[str, str]]) -> str:
    """Return the decisions of a ``ranks`` schedule in words that ``parse_readable`` reads.

    names: of each choice point of the execution its kind and its subject, by index.
    """
    clauses = []
    for decision in decisions:
        kind, subject = names[decision.index]
        option = decision.option.removeprefix(f"{subject}: ")
        if kind == "hold":
            count = sum(1 for other in names[: decision.index + 1] if other == (kind, subject))
            named = subject if count == 1 else f"{subject} ({ordinal(count)})"
            clauses.append(f"let in {named} early" if option == "early" else f"hold {named}")
        elif kind == "members":
            clauses.append(f"{option} in that order")
        else:
            clauses.append(_said(kind, subject, option))
    return "; ".join(clauses) or DEFAULT


def schedule_text(decisions: tuple[Any, ...]) -> str:
    """Return the decisions of any schedule in words for a reader, which cannot be executed where they name an index."""
    return "; ".join(clause_of(decision) for decision in decisions) or DEFAULT


def clause_of(decision: Decision) -> str:
    """Return one decision of any schedule in words for a reader."""
    subject, _, option = decision.option.rpartition(": ")
    subject = subject or decision.label
    if decision.kind == "hold":
        return f"let in {subject} early" if option == "early" else f"hold {subject}"
    if decision.kind == "members":
        return f"{option} in that order"
    if decision.kind in ("lane", "arrival"):
        return f"{option or decision.label} first (choice {decision.index})"
    return _said(decision.kind, subject, option)


def _said(kind: str, subject: str, option: str) -> str:
    """Return what both forms say in the same words."""
    if kind == "shape":
        return f"{subject} waits {option}"
    if kind == "order":
        return f"sets of tasks in order {option}"
    if kind == "program":
        return f"the program's {subject} is {option}"
    return f"{subject} {option}"
