"""Digests of generated programs under seeded schedules, to be compared between processes and Pythons.

``python -m soundness.digests FIRST LAST`` prints one line per program.
"""

import sys
import zlib

from harness import Rung
from harness.runtime.execution import Session, open_session
from soundness.compare import SCHEDULERS, run_controlled, sample
from soundness.programs import write


def digest(seed: int, *, session: Session, tracing: bool = True, portable: bool = False) -> str:
    """Return a digest of what a program shows in default order and under one schedule of each scheduler.

    tracing: every turn too, which is comparable on one version of Python only.
    """
    spec = write(seed, portable=portable)
    parts = []
    for name in (None, *sorted(SCHEDULERS)):
        seen, execution = run_controlled(
            spec,
            None if name is None else sample(seed, name),
            session=session,
            rung=Rung.LATENCY,
            discipline="ranks" if name is None else SCHEDULERS[name].discipline,
            tracing=tracing,
        )
        turns = [tuple(turn)[:4] for turn in execution.trace]
        parts.append(repr((seen, execution.choices, turns if tracing else None)))
    return f"{zlib.crc32(''.join(parts).encode()):08x}"


if __name__ == "__main__":
    portable = "portable" in sys.argv
    with open_session() as session:
        for number in range(int(sys.argv[1]), int(sys.argv[2])):
            print(number, digest(number, session=session, tracing=not portable, portable=portable))
