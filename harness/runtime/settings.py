"""How a controlled loop behaves.

Owns the settings of one loop; must not know what the loop makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.rung import Rung
from harness.model.schedule import Discipline


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How a controlled loop behaves.

    rung: the highest assumption that the scheduler may use. turn_limit: turns until the execution ends,
    0 for none. patience: iterations without a pause after which a parked op arrives all the same, so that
    a polling task starves nobody. external_wait_s: real seconds that a quiet loop waits for the answer of
    a foreign thread or of a job on a real executor; files, signals and child processes are waited for
    without an end.
    """

    rung: Rung = Rung.LATENCY
    discipline: Discipline = "ranks"
    turn_limit: int = 0
    patience: int = 128
    allow_real_io: bool = False
    external_wait_s: float = 5.0
    tracing: bool = False
