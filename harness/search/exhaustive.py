"""Exhaustive search: every schedule of a space, by stateless replay of prefixes, fewest deviations first.

Owns the frontier, the tree of what was met and the pruning of equal states; must not know how an execution is watched.

Every prefix is expanded by one execution (see ``expansion``), and the other options of each choice point that it met
join the frontier.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from harness.model.rung import Rung
from harness.runtime.clock import real_time
from harness.runtime.identity import SET_ORDERS
from harness.search.ahead import Ahead
from harness.search.certificate import Mode
from harness.search.expansion import Expander, expanding, limits_of
from harness.search.outcomes import outcome_of
from harness.search.recording import Planned
from harness.search.set_orders import SetOrders
from harness.search.states import Leaf, Node, Pending, Plan, Step, deviations_of, endless, values_of
from harness.search.target import Runner, Target
from harness.search.visits import Learned, Met, Visit, Way, prefix_of

Progress = Callable[[int, str], None]


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
        self.way = Way(mode, target.rung if rung is None else rung)
        self.bound = bound
        self.root: Node | Leaf | None = None
        self.executions = 0
        self.complete = 0
        self.shorter: int | None = None  # fewest deviations of a plan that led to a state met with more before
        self.beyond = 0  # options that need more deviations than the bound
        self.failing: dict[tuple[str, str], Failing] = {}
        self.limits: set[str] = set()  # what cut an execution short: then nothing is complete
        self.diverged = ""
        self.unseen: set[str] = set()
        self.pruned: list[tuple[Plan, Node]] = []
        self.kinds: set[str] = set()
        self._orders_tried = SetOrders(SET_ORDERS)
        self._moments: dict[str, int] = {}  # how many each run has is learned by running
        self._faults: list[tuple[Node, str, int]] = []  # where a fault falls at a moment of a run; the kinds of fault
        self._states: dict[bytes, Node] = {}
        self._frontier: list[tuple[int, int, Pending]] = []
        self._orders: list[Pending] = []
        self._count = itertools.count()
        self._ahead: Ahead | None = None

    @property
    def states(self) -> int:
        """How many distinct states were met."""
        return len(self._states)

    @property
    def pending(self) -> list[Pending]:
        """The options that were not tried."""
        return [item for *_, item in self._frontier] + self._orders

    def expect_orders(self) -> None:
        """Take the set orders that nothing has told apart so far as the same, for an estimate of what is left."""
        for item in self._orders:
            if item.node is not None and not self._orders_tried.differs(item.value):
                item.node.children[item.value] = Leaf(same=True)

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

        ahead: others who expand what is pending; what is found does not depend on them.
        """
        self._ahead = ahead
        self._frontier.append((0, next(self._count), Pending(None, 0, ())))
        with expanding(runner, self.way) as expander:
            while item := self._next():
                if self._is_over(budget, until_s):
                    heapq.heappush(self._frontier, (item.deviations, -1, item))
                    break
                self._merge(item, self._expand(expander, item))
                if progress is not None:
                    progress(self.executions, f"{self.states} states, {len(self._frontier)} to try")
        runner.session.memory = dict(self._moments)
        if not self.pending and not self.diverged:
            self._follow_endless(runner)

    def _follow_endless(self, runner: Runner) -> None:
        """Execute one schedule that only goes round among known states, since its executions were cut there."""
        for node in endless(self.root)[:1]:
            execution = runner.run(Planned(values_of(node.plan)), discipline=self.way.discipline, rung=self.way.rung)
            self.note_outcome(outcome_of(execution), node.plan)
            self.limits.update(limits_of(execution))
            self.limits.add("some states lead to no end")

    def _is_over(self, budget: int | None, until_s: float) -> bool:
        spent = budget is not None and self.executions >= budget
        return spent or real_time() > until_s or bool(self.diverged) or (self.to_first and bool(self.failing))

    def _next(self) -> Pending | None:
        if self._frontier:
            return heapq.heappop(self._frontier)[2]
        while self._orders:
            item = self._orders.pop(0)
            if self._orders_tried.is_new(item.value):
                return item
            if item.node is not None:
                item.node.children[item.value] = Leaf(same=True)
        return None

    def _expand(self, expander: Expander, item: Pending) -> Visit:
        ahead = self._ahead
        if ahead is None or ahead.works_alone(item):
            return expander.expand(prefix_of(item), known=self._states, moments=self._moments)
        visit = ahead.visit(item, self._moments)
        # Elsewhere more may be known than here: what was expanded before its turn, and then cut when it was merged.
        return visit if self._ends_rightly(visit) else ahead.visit_again(item, self._moments)

    def _ends_rightly(self, visit: Visit) -> bool:
        """Return whether an expansion went on as far as it would have here."""
        states = [met.state for met in visit.met if met.state]
        return not visit.known or len(set(states)) < len(states) or any(state in self._states for state in states)

    # -- what an execution showed -------------------------------------------------------------------

    def _merge(self, item: Pending, visit: Visit) -> None:
        """Add what was met to the tree, up to the first state that is in it, and its options to the frontier."""
        self.executions += 1
        self.diverged = visit.diverged
        place: tuple[Node | None, int] = item.node, item.value
        for met in visit.met:
            self._learn(met.learned)
            self.kinds.add(met.kind)
            plan = (*item.plan, *visit.steps[: met.place])
            known = self._states.get(met.state)
            node = known or self._add(met, plan)
            self._attach(place, node)
            place = node, 0
            if known is not None:
                self._orders_tried.add(met.order, met.members)
                self.pruned.append((plan, known))
                if (fewer := deviations_of(plan)) < deviations_of(known.plan):
                    self.shorter = min(fewer, fewer if self.shorter is None else self.shorter)
                break
        else:
            self._learn(visit.learned)
            if not visit.diverged:
                self._end(place, visit, (*item.plan, *visit.steps))
        self._extend_moments()

    def _learn(self, learned: Learned) -> None:
        for order, group in learned.groups:
            self._orders_tried.add(order, group)
        self.limits.update(learned.limits)
        self.unseen.update(learned.unseen)
        for name, count in learned.moments.items():
            self._moments[name] = max(count, self._moments.get(name, 0))

    def _attach(self, place: tuple[Node | None, int], found: Node | Leaf) -> None:
        """Say what an option led to."""
        parent, value = place
        if parent is None:
            self.root = found
        else:
            parent.children[value] = found

    def _add(self, met: Met, plan: Plan) -> Node:
        """Return the node of a choice point that is new; its other options join the frontier."""
        node = Node(met.kind, plan, members=met.members, state=met.state)
        if met.state:
            self._states[met.state] = node
            if self._ahead is not None:
                self._ahead.note(met.state)
        if met.faults:
            node.children = [None]
            self._faults.append((node, met.subject, met.faults))
        else:
            node.children = [None] * met.options
            self._extend(node, met.options)
        return node

    def _extend(self, node: Node, options: int, *, known: int = 1) -> None:
        """Put the other options of a new choice point on the frontier, those from ``known`` on."""
        for value in range(known, options):
            item = Pending(node, value, (*node.plan, Step(value, options)))
            if self.bound is not None and item.deviations > self.bound:
                self.beyond += 1
            elif node.kind == "order":
                self._orders.append(item)
            else:
                entry = item.deviations, next(self._count), item
                heapq.heappush(self._frontier, entry)
                if self._ahead is not None:
                    self._ahead.offer(entry)

    def _extend_moments(self) -> None:
        """Put the moments on the frontier that the last execution was the first to reach."""
        for node, name, kinds in self._faults:
            known, options = len(node.children), 1 + kinds * self._moments.get(name, 0)
            if options > known:
                node.children.extend([None] * (options - known))
                self._extend(node, options, known=known)

    def _end(self, place: tuple[Node | None, int], visit: Visit, plan: Plan) -> None:
        """Note an execution that ran to its end."""
        self.complete += 1
        self._attach(place, Leaf())
        self.note_outcome(visit.outcome, plan)

    def note_outcome(self, outcome: tuple[tuple[str, str], ...], plan: Plan) -> None:
        """Keep each distinct failure, with the first plan that led to it."""
        while plan and not plan[-1].value:
            plan = plan[:-1]
        for oracle, message in outcome:
            self.failing.setdefault((oracle, message), Failing(oracle, message, plan, self.executions))
