"""The default portfolio: which phases a search goes through.

Owns their order and shares; must not know a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hypothesis.database import DirectoryBasedExampleDatabase

from harness.adapters.hypothesis import HypothesisPhase
from harness.model.errors import UsageError
from harness.model.registry import load_plugin, plugin_names
from harness.model.rung import Rung
from harness.search.greybox import Greybox
from harness.search.parts import Part
from harness.search.portfolio import Phase
from harness.search.sampling import Sampling, SchedulerPlugin
from harness.search.sweep import Sweep
from harness.search.turns import InTurns, Stepping

DEFAULT = "portfolio"
SCHEDULERS = "harness.schedulers"
# Whose turn it is in the default portfolio: mostly what finds most, and each of the others now and then.
ORDER = ("greybox", "greybox", "greybox", "surw", "surw")
OTHERS = ("sweep", "pct", "sweep", "pos", "sweep", "trio-shuffle")
# Below relaxed there are fewer choices, and single deviations are a good part of what there is.
ORDER_BELOW_RELAXED = ("greybox", "sweep", "surw", "sweep")
OTHERS_BELOW_RELAXED = ("pct", "pos", "uniform")
# A search of more executions than this has several parts. Of a part, about so many belong to the sweep.
PART = 500
PART_SWEPT = 60


def make_phases(
    scheduler: str = DEFAULT,
    *,
    rung: Rung,
    seed: int | None = 0,
    key: str = "",
    database: Path | None = None,
    skip: int = 0,
) -> list[Phase]:
    """Return the phases of a search, or of a part of one.

    scheduler: ``portfolio``, ``hypothesis``, ``sweep``, ``greybox``, or the name of a registered scheduler. key: names
    the program in the example database, a directory. skip: so many plans of the sweep are left to other parts.
    Raises UsageError for an unknown scheduler, and for one that needs a higher rung than ``rung``.
    """
    store = None if database is None else DirectoryBasedExampleDatabase(database)
    drawn = HypothesisPhase(rung=rung, seed=seed, database=store, key=key)
    if scheduler == DEFAULT:
        turns = _in_turns(rung=rung, seed=seed, skip=skip)
        return [turns, drawn, turns]  # Hypothesis notices when it has exhausted a small space; the rest goes on
    if scheduler == "hypothesis":
        return [drawn]
    if scheduler == Greybox.name:
        return [Greybox(seed=seed or 0, rung=rung)]
    if scheduler == "sweep":
        return [Sweep(rung=rung, share=1.0)]
    return [_sampling(scheduler, rung=rung, seed=seed, share=1.0)]


@dataclass(frozen=True, slots=True)
class PartPhases:
    """The phases of one part of a search, to be made in any process. The fields are those of ``make_phases``."""

    scheduler: str
    seed: int
    key: str = ""
    database: Path | None = None
    skip: int = 0

    def make(self, rung: Rung) -> list[Phase]:
        """Return new phases."""
        return make_phases(
            self.scheduler, rung=rung, seed=self.seed, key=self.key, database=self.database, skip=self.skip
        )


def make_parts(
    scheduler: str = DEFAULT, *, budget: int, seed: int = 0, key: str = "", database: Path | None = None
) -> list[Part]:
    """Return the parts of a search of ``budget`` executions, each with a seed of its own, counted from ``seed``.

    There is one up to ``PART`` executions, and for a scheduler that draws nothing. Only the first uses the database.
    """
    whole = Part(PartPhases(scheduler, seed, key, database), budget)
    if budget <= PART or _is_systematic(scheduler):
        return [whole]
    parts = [Part(whole.phases, PART)]
    for number in range(1, -(-budget // PART)):
        phases = PartPhases(scheduler, seed + number, skip=number * PART_SWEPT)
        parts.append(Part(phases, min(PART, budget - number * PART)))
    return parts


def _is_systematic(scheduler: str) -> bool:
    if scheduler in (DEFAULT, "hypothesis", Greybox.name):
        return False
    return scheduler == "sweep" or getattr(load_scheduler(scheduler), "systematic", False)


def _in_turns(*, rung: Rung, seed: int | None, skip: int) -> InTurns:
    """Return the sweep, the greybox phase and the random schedulers in turns."""
    relaxed = rung is Rung.RELAXED
    order, others = (ORDER, OTHERS) if relaxed else (ORDER_BELOW_RELAXED, OTHERS_BELOW_RELAXED)
    sweep = Sweep(rung=rung, skip=skip)
    phases: dict[str, Stepping] = {"greybox": Greybox(seed=seed or 0, rung=rung), "sweep": sweep}
    for name in ("surw", *others):
        if name not in phases:
            phases[name] = _sampling(name, rung=rung, seed=seed, share=1.0, watched=True)
    return InTurns(sweep, [phases[name] for other in others for name in (*order, other)], share=0.5)


def _sampling(name: str, *, rung: Rung, seed: int | None, share: float, watched: bool = False) -> Sampling:
    plugin = load_scheduler(name)
    if plugin.rung is not None and plugin.rung > rung:
        raise UsageError(f"scheduler {name!r} needs --rung {plugin.rung.label}, not {rung.label}")
    return Sampling(name, plugin, seed=seed or 0, rung=rung, share=share, watched=watched)


def load_scheduler(name: str) -> SchedulerPlugin:
    """Return the scheduler plugin called ``name``, or ``name-N`` with a parameter; raises UsageError for none."""
    base, _, number = name.rpartition("-")
    plugin: Any = None
    if number.isdecimal() and base in plugin_names(SCHEDULERS):
        plugin = load_plugin(SCHEDULERS, name=base, kind="scheduler")
        if not hasattr(plugin, "with_parameter"):
            raise UsageError(f"scheduler {base!r} takes no number: {name!r}")
        plugin = plugin.with_parameter(int(number))
    return cast(SchedulerPlugin, plugin or load_plugin(SCHEDULERS, name=name, kind="scheduler"))
