"""The default portfolio: which phases a search goes through.

Owns their order and shares; must not know a program.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from hypothesis.database import DirectoryBasedExampleDatabase

from harness.adapters.hypothesis import HypothesisPhase
from harness.model.errors import UsageError
from harness.model.registry import load_plugin
from harness.model.rung import Rung
from harness.search.portfolio import Phase
from harness.search.sampling import Sampling, SchedulerPlugin
from harness.search.sweep import Sweep

DEFAULT = "portfolio"


def make_phases(
    scheduler: str = DEFAULT,
    *,
    rung: Rung,
    seed: int | None = 0,
    key: str = "",
    database: Path | None = None,
) -> list[Phase]:
    """Return the phases of a search.

    scheduler: ``portfolio``, ``hypothesis``, ``sweep``, or the name of a registered scheduler. key: names
    the program in the example database, a directory.
    Raises UsageError for an unknown scheduler, and for one that needs a higher rung than ``rung``.
    """
    store = None if database is None else DirectoryBasedExampleDatabase(database)
    drawn = HypothesisPhase(rung=rung, seed=seed, database=store, key=key)
    if scheduler == DEFAULT:
        phases: list[Phase] = [Sweep(rung=rung)]
        if rung is Rung.RELAXED:
            phases.append(_sampling("trio-shuffle", rung=rung, seed=seed, share=0.2))
        return [*phases, drawn]
    if scheduler == "hypothesis":
        return [drawn]
    if scheduler == "sweep":
        return [Sweep(rung=rung, share=1.0)]
    return [_sampling(scheduler, rung=rung, seed=seed, share=1.0)]


def _sampling(name: str, *, rung: Rung, seed: int | None, share: float) -> Sampling:
    plugin = cast(SchedulerPlugin, load_plugin("harness.schedulers", name=name, kind="scheduler"))
    if plugin.rung is not None and plugin.rung > rung:
        raise UsageError(f"scheduler {name!r} needs --rung {plugin.rung.label}, not {rung.label}")
    return Sampling(name, plugin, seed=seed or 0, rung=rung, share=share)
