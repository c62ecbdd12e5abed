"""Exhaustive search: every schedule of a space, by stateless replay of prefixes, fewest deviations first.

Owns the frontier, the pruning of equal states and the verdict; must not know how a state is read.

Each execution replays a prefix and takes the default from there on; the other options of every new choice
point join the frontier. In the mode ``fingerprint`` an execution ends where it meets a state that was met
before: what follows is the same, or will be explored from there.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.model.choice import ChoicePoint
from harness.model.outcome import Execution
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.runtime.clock import real_time
from harness.runtime.execution import collect
from harness.runtime.faults import Moments
from harness.runtime.fingerprint import fingerprint
from harness.runtime.identity import watch_hashes
from harness.runtime.lanes import MAX_PASSED_OVER
from harness.runtime.turns import Callback, only_counts, only_wakes
from harness.search.certificate import Mode
from harness.search.outcomes import outcome_of, quiet_ends, summary_of
from harness.search.set_orders import SetOrders
from harness.search.states import Leaf, Node, Pending, Plan, Step
from harness.search.target import Runner, Target

Progress = Callable[[int, str], None]


# Executions that end in the middle leave cycles, and asyncio's register of tasks is walked for each state.
COLLECT_EVERY = 20


class PrunedError(BaseException):
    """Ends an execution that met a known state; raised between turns, where no program can catch it."""


class Explorer:
    """Replays a plan, then takes defaults and reports each new choice point; lives for one execution."""

    def __init__(self, space: Exploration, item: Pending) -> None:
        self._space = space
        self._plan = item.plan
        self._parent, self._value = item.node, item.value
        self.steps: list[Step] = []
        self.diverged = ""
        self.pruned: Node | None = None

    def choose(self, point: ChoicePoint, /) -> int:
        """Return the planned value, or the default at a new choice point."""
        place, options = len(self.steps), len(point.enabled)
        self._space.note_limits(point)
        if place < len(self._plan):
            step = self._plan[place]
            if step.options != options and not isinstance(point.enabled, Moments):
                self.diverged = self.diverged or f"{options} options instead of {step.options} at choice {place}"
            step = Step(min(step.value, options - 1), options, step.forced)
            if place + 1 == len(self._plan):
                self._space.leave(self._parent)
        else:
            forced = self._space.forced(point)
            if forced is None:
                self._meet(point, options)
            step = Step(forced or 0, options, forced is not None)
        if point.kind == "order":
            self._space.orders.number = step.value
        self.steps.append(step)
        return step.value

    def _meet(self, point: ChoicePoint, options: int) -> None:
        """Attach the choice point to the tree; stop at a state that is in it."""
        if self.diverged:
            return
        node, known = self._space.node_of(point, tuple(self.steps))
        self.attach(node)
        if known:
            self.pruned = node
            raise PrunedError
        self._parent, self._value = node, 0
        if isinstance(point.enabled, Moments):
            node.children = [None]
            self._space.moments.append((node, str(point.subject), point.enabled.kinds))
            return
        node.children = [None] * options
        self._space.extend(node, options)

    def attach(self, place: Node | Leaf) -> None:
        """Say what the last choice led to."""
        if self._parent is None:
            self._space.root = place
        else:
            self._parent.children[self._value] = place


@dataclass(frozen=True, slots=True)
class Failing:
    """A distinct failing outcome and the first plan that led to it, which has the fewest deviations."""

    oracle: str
    message: str
    plan: Plan
    found_after: int


class Exploration:
    """One exhaustive search in progress."""

    def __init__(
        self,
        target: Target,
        *,
        mode: Mode,
        rung: Rung | None = None,
        bound: int | None = None,
        to_first: bool = False,
    ) -> None:
        """bound: the most deviations of a schedule that is tried; None for no bound. to_first: stop at a failure."""
        self.to_first = to_first
        self.target = target
        self.mode = mode
        self.rung = target.rung if rung is None else rung
        self.discipline: Discipline = "turns"
        self.bound = bound
        self.root: Node | Leaf | None = None
        self.executions = 0
        self.complete = 0
        self.beyond = 0  # options that need more deviations than the bound
        self.failing: dict[tuple[str, str], Failing] = {}
        self.limits: set[str] = set()  # what cut an execution short: then nothing is complete
        self.diverged = ""
        self.unseen: set[str] = set()
        self.pruned: list[tuple[Plan, Node]] = []
        self.kinds: set[str] = set()
        self.loop: Any = None
        self.orders = SetOrders()
        self.moments: list[tuple[Node, str, int]] = []  # faults at a moment: how many there are is learned by running
        self._reading = False
        self._states: dict[bytes, Node] = {}
        self._frontier: list[tuple[int, int, Pending]] = []
        self._orders: list[Pending] = []
        self._count = itertools.count()
        self._summaries = tuple(summary_of(judge) for judge in target.judges)

    # -- what an Explorer reports ------------------------------------------------------------------

    def node_of(self, point: ChoicePoint, plan: Plan) -> tuple[Node, bool]:
        """Return the node of a choice point and whether it was met before."""
        self.kinds.add(point.kind)
        if point.kind == "order":
            self.orders.options = tuple(point.enabled)
        if self.mode == "certain" or point.kind not in ("arrival", "lane"):
            return Node(point.kind, plan, members=frozenset(self.orders.group)), False
        journal = self.loop.journal
        extra = (point.kind, len(point.enabled), [summary(journal) for summary in self._summaries])
        self._reading = True
        state, members = fingerprint(self.loop, extra, unseen=self.unseen)
        self._reading = False
        self.orders.end_group()
        self.orders.begin_group(members)
        node = self._states.get(state)
        if node is not None:
            return node, True
        node = self._states[state] = Node(point.kind, plan, members=members)
        return node, False

    def leave(self, node: Node | None) -> None:
        """Note that the execution leaves what was explored: its tasks shared sets as they did at ``node``."""
        self.orders.begin_group(() if node is None else node.members)

    def forced(self, point: ChoicePoint) -> int | None:
        """Return the option that commutes with all others, now and later, or None: then only it is tried."""
        if self.rung is not Rung.RELAXED or self.mode == "certain":
            return None
        waking = next((index for index, option in enumerate(point.enabled) if only_wakes(option)), None)
        if waking is not None:
            return waking
        last = point.enabled[-1]
        return len(point.enabled) - 1 if isinstance(last, Callback) and only_counts(last.handle) else None

    def extend(self, node: Node, options: int, *, known: int = 1) -> None:
        """Put the other options of a new choice point on the frontier, those from ``known`` on."""
        for value in range(known, options):
            item = Pending(node, value, (*node.plan, Step(value, options)))
            if self.bound is not None and item.deviations > self.bound:
                self.beyond += 1
            elif node.kind == "order":
                self._orders.append(item)
            else:
                heapq.heappush(self._frontier, (item.deviations, next(self._count), item))

    def _extend_moments(self) -> None:
        """Put the moments on the frontier that the last execution was the first to reach."""
        for node, name, kinds in self.moments:
            known, options = len(node.children), 1 + kinds * self.loop.memory.get(name, 0)
            if options > known:
                node.children.extend([None] * (options - known))
                self.extend(node, options, known=known)

    def note_limits(self, point: ChoicePoint) -> None:
        """Remember when a limit of the loop took a choice away; the default of a limit is never a pass."""
        loop = self.loop
        if point.kind == "arrival" and loop.busy >= loop.settings.patience:
            self.limits.add("a program polled for longer than the loop's patience")
        elif point.kind == "lane" and max(loop.passed_over.values(), default=0) >= MAX_PASSED_OVER - 1:
            self.limits.add(f"a turn was passed over {MAX_PASSED_OVER} times")

    # -- running -----------------------------------------------------------------------------------

    @property
    def states(self) -> int:
        """How many distinct states were met."""
        return len(self._states)

    @property
    def pending(self) -> list[Pending]:
        """The options that were not tried."""
        return [item for *_, item in self._frontier] + self._orders

    def run(self, runner: Runner, *, budget: int | None, until_s: float, progress: Progress | None = None) -> None:
        """Explore until nothing is left, the budget is spent or the time is over."""
        runner.session.on_begin.append(self._begin)
        with watch_hashes(self._note_hash), quiet_ends():
            self._frontier.append((0, next(self._count), Pending(None, 0, ())))
            while item := self._next():
                if self._is_over(budget, until_s):
                    heapq.heappush(self._frontier, (item.deviations, -1, item))
                    return
                self._execute(runner, item)
                if progress is not None:
                    progress(self.executions, f"{self.states} states, {len(self._frontier)} to try")

    def _is_over(self, budget: int | None, until_s: float) -> bool:
        spent = budget is not None and self.executions >= budget
        return spent or real_time() > until_s or bool(self.diverged) or (self.to_first and bool(self.failing))

    def _note_hash(self, number: int) -> None:
        if self.loop is not None and self.loop.scheduler is not None and not self._reading:
            self.orders.group.add(number)

    def _begin(self, loop: Any) -> None:
        self.loop = loop

    def _next(self) -> Pending | None:
        if self._frontier:
            return heapq.heappop(self._frontier)[2]
        while self._orders:
            item = self._orders.pop(0)
            if self.orders.is_new(item.value):
                return item
            if item.node is not None:
                item.node.children[item.value] = Leaf(same=True)
        return None

    def _execute(self, runner: Runner, item: Pending) -> None:
        explorer = Explorer(self, item)
        execution = runner.run(explorer, discipline=self.discipline, rung=self.rung)
        self.executions += 1
        if self.executions % COLLECT_EVERY == 0:
            collect()
        self.orders.end_group()
        self._extend_moments()
        self.diverged = explorer.diverged
        if explorer.diverged:
            return
        if explorer.pruned is not None:
            self.pruned.append((tuple(explorer.steps), explorer.pruned))
            return
        self.complete += 1
        explorer.attach(self._leaf(execution, tuple(explorer.steps)))

    def _leaf(self, execution: Execution, plan: Plan) -> Leaf:
        if execution.ending.kind in ("turn-limit", "stalled"):
            self.limits.add(f"an execution ended by its {execution.ending.kind}")
        if execution.used_real_io:
            self.limits.add("the program did real I/O")
        found = outcome_of(execution)
        while plan and not plan[-1].value:
            plan = plan[:-1]
        for oracle, message in found:
            self.failing.setdefault((oracle, message), Failing(oracle, message, plan, self.executions))
        return Leaf()
