"""freezegun that follows the virtual clock of the loop.

Owns the clock models; must not know workflows. freezegun is started once per search, because its start
scans every module, and moved at every read, because equal timestamps would invent failures.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

import freezegun
import freezegun.api

from harness.model.errors import UsageError

EPOCH = datetime.datetime(2024, 1, 1)
MODELS = ("increasing", "coarse:<seconds>", "frozen", "stepback")


class LoopClock(freezegun.api.FrozenDateTimeFactory):
    """The time that freezegun reports: EPOCH plus the loop's virtual time.

    invariant: under the model ``increasing`` no two reads of one execution return the same time.
    """

    def __init__(self, model: str = "increasing") -> None:
        super().__init__(EPOCH)
        self.loop: Any = None
        self.last_us = 0
        name, _, size = model.partition(":")
        self.step_us = round(float(size) * 1e6) if name == "coarse" and size else 0
        if name not in ("increasing", "coarse", "frozen", "stepback") or (name == "coarse" and self.step_us <= 0):
            raise UsageError(f"unknown clock model {model!r} (known: {', '.join(MODELS)})")
        self.model = name

    def begin(self, loop: Any) -> None:
        """Start a new execution."""
        self.loop = loop
        self.last_us = 0

    def __call__(self) -> datetime.datetime:
        """Return the current time in UTC, without a zone."""
        if self.loop is None or self.model == "frozen":
            return EPOCH
        self.last_us = max(self.last_us + 1, round(self.loop.polled_time() * 1e6))
        now_us = self.last_us
        if self.model == "coarse":
            now_us -= now_us % self.step_us
        elif self.model == "stepback" and now_us % 7 == 3:
            now_us -= 1000
        return EPOCH + datetime.timedelta(microseconds=now_us)


@contextlib.contextmanager
def following_clock(model: str = "increasing") -> Iterator[LoopClock]:
    """Freeze the process's clocks to a LoopClock while the context is open."""
    clock = LoopClock(model)
    freezer = freezegun.freeze_time(EPOCH)
    freezer.start()
    freezegun.api.freeze_factories[-1] = clock
    try:
        yield clock
    finally:
        clock.loop = None
        freezer.stop()
