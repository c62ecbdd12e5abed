"""The expansion of one prefix: an execution, and each choice point that it met after the prefix.

Owns how such an execution is watched; must not know what was explored, nor in which process this is.

An execution replays the prefix and takes the default from there on. In the mode ``fingerprint`` it ends where it
meets a state that is known: what follows is the same, or will be explored from there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.model.choice import ChoicePoint
from harness.model.outcome import Execution
from harness.model.rung import Rung
from harness.runtime.access import DECLARED
from harness.runtime.execution import Session
from harness.runtime.faults import Moments, moments_shown
from harness.runtime.files import contents_of, watch_writes
from harness.runtime.fingerprint import fingerprint
from harness.runtime.identity import watch_hashes
from harness.runtime.lanes import MAX_PASSED_OVER
from harness.runtime.leftovers import collect
from harness.runtime.texts import in_room
from harness.runtime.turns import Callback, only_counts, only_releases, only_wakes
from harness.search.outcomes import outcome_of, quiet_ends, summary_of
from harness.search.states import Step
from harness.search.target import Runner
from harness.search.visits import Learned, Met, Prefix, Visit, Way

# Executions that end in the middle leave cycles, and asyncio's register of tasks is walked for each state.
COLLECT_EVERY = 20
LEFT_BEHIND = (
    "the same choices led to different states: an execution left something behind that a later one began with (a "
    "global, a cache, a file), or something has a clock or randomness of its own"
)


class PrunedError(BaseException):
    """Ends an execution that met a known state; raised between turns, where no program can catch it."""


def begins_alike(session: Session, loop: Any) -> bool:
    """Return whether ``loop``, at its first choice of an arrival or a turn, is as others were that answered alike.

    For searches that take no other fingerprint: until then, equal answers must have led to one state.
    """
    answers = tuple(loop.answers)
    noted = loop.scratch.pop(DECLARED, None)  # of the search, which may be of one kind or the other
    state = fingerprint(loop, answers, unseen=set())[0]
    if noted is not None:
        loop.scratch[DECLARED] = noted
    return session.beginnings.setdefault(answers, state) == state


class Expander:
    """Expands prefixes of one target, one after another; see ``expanding``."""

    def __init__(self, runner: Runner, way: Way) -> None:
        self.way = way
        self.loop: Any = None  # the order of sets is chosen before there is one
        self.group: set[int] = set()  # tasks that may share a set; -1 stands for a future
        self._runner = runner
        self._reading = False
        self._fields: frozenset[str] = frozenset()  # of the loop, when it began
        self._written: dict[str, None] = {}  # files that the execution changed by name
        self._executions = 0
        self._summaries = tuple(summary_of(judge) for judge in runner.target.judges)

    def expand(self, prefix: Prefix, *, known: Container[bytes], moments: Mapping[str, int]) -> Visit:
        """Execute ``prefix`` and then defaults, until the end or a state in ``known``.

        moments: how many each run is known to have, by its name.
        """
        session = self._runner.session
        # What one execution teaches reaches others only by way of who asks: they may be in other processes.
        session.memory, session.learning = dict(moments), False
        self.loop, self.group = None, set()
        explorer = Explorer(self, prefix, known=known, moments=moments)
        try:
            execution = self._runner.run(explorer, discipline=self.way.discipline, rung=self.way.rung)
        finally:
            session.learning = True
        self._executions += 1
        if self._executions % COLLECT_EVERY == 0:
            collect()
        return explorer.visit(execution)

    def read_state(self, point: ChoicePoint, unseen: set[str]) -> tuple[bytes, frozenset[int]]:
        """Return the fingerprint at a choice point and the members of sets; b"" where none is taken."""
        if self.way.mode == "certain" or point.kind not in ("arrival", "lane"):
            return b"", frozenset(self.group)
        journal = self.loop.journal
        marks = sorted((vars(self.loop).keys() - self._fields).difference(dir(type(self.loop))))
        extra = (
            *(point.kind, len(point.enabled), [summary(journal) for summary in self._summaries]),
            *(self._written and contents_of(sorted(self._written)), [(name, vars(self.loop)[name]) for name in marks]),
        )
        self._reading = True
        try:
            state, members = fingerprint(self.loop, extra, unseen=unseen)
            return state, members if state else members | self.group
        finally:
            self._reading = False

    def begins_alike(self) -> bool:
        """Return whether this execution began as others did, when no other fingerprint would tell."""
        self._reading = True
        try:
            return self.way.mode != "certain" or begins_alike(self._runner.session, self.loop)
        finally:
            self._reading = False

    def forced(self, point: ChoicePoint) -> int | None:
        """Return the option that commutes with all others, now and later, or None: then only it is tried."""
        if self.way.rung is not Rung.RELAXED or self.way.mode == "certain":
            return None
        waking = next((index for index, option in enumerate(point.enabled) if only_wakes(option)), None)
        if waking is not None:
            return waking
        last = point.enabled[-1]
        commutes = isinstance(last, Callback) and (only_counts(last.handle) or only_releases(last.handle))
        return len(point.enabled) - 1 if commutes else None

    def begin(self, loop: Any) -> None:
        """Note which loop runs now."""
        self.loop = loop
        self._fields = frozenset(vars(loop))
        self._written.clear()

    def note_file(self, path: str) -> None:
        """Note that a file is about to be changed, by the program unless nothing runs."""
        if self.loop is not None and self.loop.scheduler is not None and not (self._reading or in_room(path)):
            self._written[path] = None

    def note_hash(self, number: int) -> None:
        """Note that the hash of a task or a future was used by the program."""
        if self.loop is not None and self.loop.scheduler is not None and not self._reading:
            self.group.add(number)


@contextmanager
def expanding(runner: Runner, way: Way) -> Iterator[Expander]:
    """Yield what expands prefixes of ``runner``'s target."""
    expander = Expander(runner, way)
    begin = expander.begin
    runner.session.on_begin.append(begin)
    try:
        with watch_hashes(expander.note_hash), watch_writes(expander.note_file), quiet_ends():
            yield expander
    finally:
        expander.loop = None
        runner.session.on_begin.remove(begin)


class Explorer:
    """Replays a prefix, then takes defaults and notes each new choice point; lives for one execution."""

    def __init__(
        self, expander: Expander, prefix: Prefix, *, known: Container[bytes], moments: Mapping[str, int]
    ) -> None:
        self._expander = expander
        self._prefix = prefix
        self._known = known
        self._moments = moments
        self._fresh: set[bytes] = set()  # states that this execution met
        self._steps: list[Step] = []  # after the prefix
        self._place = 0
        self._met: list[Met] = []
        self._order = 0
        self._groups: list[tuple[int, frozenset[int]]] = []
        self._limits: dict[str, None] = {}
        self._unseen: set[str] = set()
        self._told: dict[str, None] = {}  # limits and types that were reported
        self._begins = True  # nothing was asked yet but the order of sets, faults and shapes
        self._stopped = False
        self._diverged = ""

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the planned value, or the default at a new choice point."""
        place, options, plan = self._place, len(point.enabled), self._prefix.plan
        self._place += 1
        self._limits.update(dict.fromkeys(limits_at(self._expander.loop, point)))
        if self._begins and point.kind in ("arrival", "lane"):
            self._begins = False
            if not self._expander.begins_alike():
                self._limits[LEFT_BEHIND] = None
        if place < len(plan):
            value = self._planned(point, plan[place], place)
            if place + 1 == len(plan):
                self._expander.group = set(self._prefix.members)
                self._compare(point)
        else:
            forced = self._expander.forced(point)
            if forced is None and not self._diverged:
                self._meet(point, options)
            value = forced or 0
            self._steps.append(Step(value, options, forced is not None))
        if point.kind == "order":
            self._order = value
        return value

    def _planned(self, point: ChoicePoint, step: Step, place: int) -> int:
        options = len(point.enabled)
        if step.options != options and not isinstance(point.enabled, Moments):
            self._diverged = self._diverged or f"{options} options instead of {step.options} at choice {place}"
        return min(step.value, options - 1)

    def _compare(self, point: ChoicePoint) -> None:
        """Note when the replay of the prefix led to another state than the one that it was met in."""
        if self._prefix.state and self._expander.read_state(point, self._unseen)[0] != self._prefix.state:
            self._limits[LEFT_BEHIND] = None

    def _meet(self, point: ChoicePoint, options: int) -> None:
        """Note a choice point; stop at a state that is known."""
        expander = self._expander
        state, members = expander.read_state(point, self._unseen)
        if state:
            self._end_group()
            expander.group = set(members)
        faults = point.enabled.kinds if isinstance(point.enabled, Moments) else 0
        subject = str(point.subject) if faults else ""
        learned = self._take_learned({} if expander.loop is None else moments_shown(expander.loop))
        self._met.append(
            Met(point.kind, len(self._steps), options, state, members, self._order, learned, subject, faults)
        )
        if state in self._known or state in self._fresh:
            self._stopped = True
            raise PrunedError
        if state:
            self._fresh.add(state)

    def _end_group(self) -> None:
        group = self._expander.group
        if len(group) > 1 or -1 in group:
            self._groups.append((self._order, frozenset(group)))

    def _take_learned(self, shown: Mapping[str, int]) -> Learned:
        """Return what is new since it was last taken. shown: moments, by the name of their run."""
        groups, self._groups = tuple(self._groups), []
        unseen = self._unseen - self._told.keys()
        limits = self._limits.keys() - self._told.keys()
        self._told.update(dict.fromkeys([*unseen, *limits]))
        more = {name: count for name, count in shown.items() if count > self._moments.get(name, 0)}
        return Learned(groups, tuple(sorted(limits)), tuple(sorted(unseen)), more)

    def visit(self, execution: Execution) -> Visit:
        """Return what it came to, after the execution."""
        if self._stopped:
            return Visit(tuple(self._steps), tuple(self._met), known=True, diverged=self._diverged)
        self._end_group()
        self._limits.update(dict.fromkeys(limits_of(execution)))
        learned = self._take_learned(moments_shown(self._expander.loop))
        steps, met = tuple(self._steps), tuple(self._met)
        return Visit(steps, met, outcome=outcome_of(execution), learned=learned, diverged=self._diverged)


def limits_at(loop: Any, point: ChoicePoint) -> Iterator[str]:
    """Yield the limits of the loop that took a choice away here; the default of a limit is never a pass."""
    if point.kind == "arrival" and loop.busy >= loop.settings.patience:
        yield "a program polled for longer than the loop's patience"
    elif point.kind == "lane" and max(loop.passed_over.values(), default=0) >= MAX_PASSED_OVER - 1:
        yield f"a turn was passed over {MAX_PASSED_OVER} times"


def limits_of(execution: Execution) -> Iterator[str]:
    """Yield what keeps a whole execution from counting as one of those of the space."""
    if execution.ending.kind in ("turn-limit", "stalled"):
        yield f"an execution ended by its {execution.ending.kind}"
    if execution.used_real_io:
        yield "the program did real I/O"
