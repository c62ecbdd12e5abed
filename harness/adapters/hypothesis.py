"""Hypothesis as a phase of the search: one choice sequence for shapes, faults and ranks.

Owns the translation of choice points into draws, and the example database; must not know the program.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, strategies
from hypothesis.database import ExampleDatabase
from hypothesis.errors import NoSuchExample
from hypothesis.internal.conjecture import providers

from harness.model.choice import ChoicePoint
from harness.model.rung import Rung
from harness.model.schedule import Discipline
from harness.search.portfolio import Failure, Trial
from harness.search.recording import Recorded

# Phase.explain is left out: it costs four times the rest and explains draws, not orders.
_PHASES = (Phase.reuse, Phase.generate, Phase.shrink)


class SpentError(BaseException):
    """Ends Hypothesis when no execution is left; it takes any other Exception for a failure of the test."""


class Drawn:
    """Answers each choice point with a draw; 0, the default, is what Hypothesis shrinks to.

    A hold and an early arrival are one draw of three values: one draw per op, as DESIGN has it.
    """

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.stopped: BaseException | None = None

    def choose(self, point: ChoicePoint, /) -> int:
        """Return a drawn index, or 0 once Hypothesis wants no more of this example.

        Hypothesis says so with an exception; raised here it would run through the program under test.
        """
        if self.stopped is not None:
            return 0
        try:
            return int(self._draw(_INTEGERS[len(point.enabled)]))
        except BaseException as stop:
            self.stopped = stop
            return 0


def _collect_constants() -> None:
    """Let Hypothesis read the sources of the project's modules now.

    It does so in one of its first draws (hypothesis 6.170, conjecture/providers.py), which takes a third of a second of
    an idle machine where nothing is cached: within a turn, on a busy one, that was taken for a turn that blocks.
    """
    collect = getattr(providers, "_get_local_constants", None)
    if collect is not None:
        collect()


class _Integers(dict[int, Any]):
    """Strategies for indices, by the number of options: building one costs more than drawing from it."""

    def __missing__(self, options: int) -> Any:
        self[options] = strategies.integers(0, options - 1)
        return self[options]


_INTEGERS = _Integers()


def workflows(*, max_siblings: int = 3, max_depth: int = 2, features: tuple[str, ...] | None = None) -> Any:
    """Return a strategy of generated workflows (``Flow``), for tests that Hypothesis drives by itself.

    Inside an interleaved test take the fixture ``flow`` instead: workflow and order are one choice sequence there.
    """
    from harness.adapters.agent_framework.generated import PLAIN, Flow, generate

    @strategies.composite
    def flows(draw: Any) -> Flow:
        def choose(options: Sequence[str], _name: str) -> int:
            return int(draw(_INTEGERS[len(options)])) if len(options) > 1 else 0

        return Flow(generate(choose, features=features or PLAIN, max_siblings=max_siblings, max_depth=max_depth))

    return flows()


class HypothesisPhase:
    """Lets Hypothesis draw schedules, within what is left of the budget, and shrink the one that fails."""

    name = "hypothesis"

    def __init__(
        self,
        *,
        rung: Rung,
        seed: int | None = None,
        database: ExampleDatabase | None = None,
        key: str = "",
        discipline: Discipline = "ranks",
    ) -> None:
        """seed: None lets Hypothesis choose, and --hypothesis-seed decide. key: names the entry in ``database``."""
        self._rung = rung
        self._seed = seed
        self._database = database
        self._key = key
        self._discipline = discipline

    def look(self, trial: Trial) -> Failure | None:
        """Search until a draw fails; None when the budget is spent or Hypothesis exhausted the space."""
        if trial.left <= 0:
            return None
        minimal: dict[str, Mapping[int, int]] = {}

        @strategies.composite
        def executions(draw: Any) -> bool:
            drawn = Drawn(draw)
            scheduler = Recorded(drawn)
            state = random.getstate()  # Hypothesis objects to a test that moves the global generator
            # Replays and shrinks run beyond the budget.
            execution = trial.run(scheduler, discipline=self._discipline, rung=self._rung, beyond=True)
            random.setstate(state)
            if execution.violations and drawn.stopped is None:
                minimal["plan"] = scheduler.plan
            if trial.left <= 0 and not minimal:
                raise SpentError  # examples that Hypothesis gave up were executed, and its count leaves them out
            if drawn.stopped is not None:
                raise drawn.stopped
            return bool(execution.violations)

        settings = hypothesis.settings(
            max_examples=trial.left,
            deadline=None,
            database=self._database,
            phases=_PHASES,
            suppress_health_check=list(HealthCheck),
        )
        _collect_constants()
        # Draws of one example must not depend on what earlier examples taught (how many moments a run has).
        session = trial.runner.session
        session.learning = False
        try:
            hypothesis.find(
                executions(),
                bool,
                settings=settings,
                random=None if self._seed is None else random.Random(self._seed),
                database_key=self._key.encode() or None,
            )
        except (NoSuchExample, SpentError):
            return None
        finally:
            session.learning = True
        return Failure(minimal["plan"], self._discipline, self._rung)
