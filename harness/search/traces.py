"""The search of declared programs: depth first, one complete execution per inequivalent schedule.

Owns the path of choices and what the loop shows of each turn; must not know when two turns commute.
"""

from __future__ import annotations

from typing import Any

from harness.model.choice import ChoicePoint
from harness.runtime.access import DECLARED, PROMISE
from harness.runtime.execution import Session
from harness.runtime.faults import moments_shown
from harness.runtime.identity import path_of
from harness.runtime.lanes import Lane, turn_task
from harness.runtime.turns import Callback, only_counts
from harness.search.ahead import Ahead
from harness.search.exhaustive import Exploration, Progress
from harness.search.expansion import LEFT_BEHIND, PrunedError, begins_alike, expanding, limits_at, limits_of
from harness.search.outcomes import outcome_of
from harness.search.partial_order import Event, Fork, add_races, still_asleep
from harness.search.states import Pending, Plan, Step
from harness.search.target import Runner

_CALLBACKS = "plain callbacks"


class Traced:
    """Follows the path of a ``Traces`` and extends it; notes each turn. It lives for one execution."""

    def __init__(self, space: Traces) -> None:
        self._space = space
        self._forks = space.forks
        self.steps: list[Step] = []
        self.events: list[Event] = []
        self.blocked = False
        self.diverged = ""
        self._asleep: dict[str, Event] = {}
        self._place = -1
        self._lane = ""
        self._cause = -1
        self._causes: dict[Any, int] = {}
        self._unsure = False
        self._noted: dict[str, bool] = {}
        self._begins = True

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the option of the path, or the first one that does not sleep."""
        place = len(self.steps)
        names = tuple(_CALLBACKS if isinstance(option, Callback) else str(option) for option in point.enabled)
        lanes = point.kind == "lane" and all(isinstance(option, (Callback, Lane)) for option in point.enabled)
        if point.kind == "lane":
            self.end_turn()
        elif point.kind != "order":
            self._unsure = True
        if self._begins and point.kind in ("arrival", "lane"):
            self._begins = False
            if not begins_alike(self._space.session, self._space.loop):
                self._space.limits.add(LEFT_BEHIND)
        if place < len(self._forks):
            fork = self._forks[place]
            if fork.options != names:
                self.diverged = self.diverged or f"{' | '.join(names)} instead of {' | '.join(fork.options)}"
                fork = Fork(names, lanes)
        else:
            fork = Fork(names, lanes, sleep=dict(self._asleep) if lanes else {})
            fork.value = next((value for value, name in enumerate(names) if name not in fork.sleep), -1)
            fork.todo = {fork.value} if lanes or point.kind == "order" else set(range(len(names)))
            if fork.value < 0:
                self.blocked = True
                raise PrunedError
            self._forks.append(fork)
        self._asleep = fork.asleep() if lanes else {}
        self._place = place if point.kind == "lane" else self._place
        self._space.limits.update(limits_at(self._space.loop, point))
        self._space.kinds.add(point.kind)
        self.steps.append(Step(fork.value, len(names)))
        return fork.value

    def begin_turn(self, handle: Any) -> None:
        """Note who runs; called by the loop before each turn."""
        self.end_turn()
        loop = self._space.loop
        task = turn_task(handle)
        self._lane = _CALLBACKS if task is None else path_of(loop, task)
        self._cause = self._causes.get(handle, -1)
        plain = task is None and not only_counts(handle, last=True)
        self._unsure = plain or bool(loop.parked) or bool(loop._scheduled)
        if self._lane in self._asleep and self._place < 0:
            self.blocked = True
            raise PrunedError

    def end_turn(self) -> None:
        """Close the turn that ran, and note what it made ready."""
        self._close()
        loop = self._space.loop
        loop.scratch[DECLARED] = self._noted = {}
        for handle in loop._ready:
            self._causes.setdefault(handle, len(self.events) - 1)

    def end(self) -> None:
        """Close the last turn; the loop is closed."""
        self._close()

    def _close(self) -> None:
        if not self._lane:
            return
        space = self._space
        space.declares = space.declares or bool(space.loop.scratch.get(PROMISE))
        accesses = None if self._unsure or not space.declares else dict(self._noted)
        event = Event(self._lane, self._cause, accesses, self._place)
        if self._place >= 0:
            fork = self._forks[self._place]
            fork.done[fork.value] = event
        self.events.append(event)
        self._asleep = still_asleep(self._asleep, event)
        self._lane, self._place = "", -1


class Traces(Exploration):
    """An exhaustive search that relies on declared accesses and on nothing else."""

    forks: list[Fork]
    session: Session
    loop: Any = None
    declares = False  # whether the program called harness.declared()
    redundant = 0  # executions that were cut because an equivalent one was tried

    def run(
        self,
        runner: Runner,
        *,
        budget: int | None,
        until_s: float,
        progress: Progress | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        """Explore until nothing is left, the budget is spent or the time is over.

        ahead: not asked: what is tried next depends on every execution before.
        """
        self.forks, self.session = [], runner.session
        session, learned = self.session, dict[str, Any]()
        with expanding(runner, self.way) as expander:
            session.on_begin.append(self._begin)
            session.learning = False  # what is offered on the path must not change while its options are tried
            try:
                while True:
                    self._trace(runner)
                    shown = moments_shown(self.loop)
                    learned |= {name: seen for name, seen in shown.items() if seen > learned.get(name, 0)}
                    if any(seen > session.memory.get(name, seen) for name, seen in learned.items()):
                        self.limits.add("a run had more moments than those that were tried")
                    if progress is not None:
                        progress(self.executions, f"{self.complete} inequivalent schedules")
                    if not self._backtrack(hashed=bool(expander.group)) or self.diverged:
                        return
                    if self._is_over(budget, until_s):
                        return
            finally:
                session.learning = True
                session.memory |= learned
                session.on_begin.remove(self._begin)

    def _begin(self, loop: Any) -> None:
        self.loop = loop
        loop.on_turn = self._traced.begin_turn

    def _trace(self, runner: Runner) -> None:
        self._traced = traced = Traced(self)
        execution = runner.run(traced, discipline=self.way.discipline, rung=self.way.rung)
        self.executions += 1
        traced.end()
        self.diverged = traced.diverged
        add_races(traced.events, self.forks)
        if traced.blocked:
            self.redundant += 1
            return
        self.complete += 1
        self.limits.update(limits_of(execution))
        self.note_outcome(outcome_of(execution), tuple(traced.steps))

    def _backtrack(self, *, hashed: bool) -> bool:
        """Move to the next option of the deepest choice point that has one; return whether there is one.

        hashed: whether some execution used the hash of a task, so that the order of sets may matter.
        """
        while self.forks:
            fork = self.forks[-1]
            if len(self.forks) == 1 and fork.options and not fork.lanes and hashed:
                fork.todo = set(range(len(fork.options)))
            fork.done.setdefault(fork.value, None)
            value = fork.next_value()
            if value is not None:
                fork.value = value
                return True
            self.forks.pop()
        return False

    @property
    def pending(self) -> list[Pending]:
        """The options on the current path that must still be tried."""
        found = []
        plan: Plan = ()
        for fork in self.forks:
            left = fork.todo - fork.done.keys()
            found += [Pending(None, value, (*plan, Step(value, len(fork.options)))) for value in left]
            plan = (*plan, Step(fork.value, len(fork.options)))
        return found
