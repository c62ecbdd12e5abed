"""The asyncio policy, and with it the loop factory.

Owns nothing but the way in; must not know searches. Policies are deprecated in Python 3.14 and gone in
3.16: ``new_event_loop`` is what ``asyncio.Runner(loop_factory=...)`` and pytest-asyncio's hook take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness.model.choice import Scheduler
from harness.runtime.loop import ControlledLoop, LoopSettings


class HarnessEventLoopPolicy(asyncio.DefaultEventLoopPolicy):
    """Makes controlled loops.

    scheduler: makes one scheduler per loop; None for the default order. settings: of each loop, such as
    ``LoopSettings(allow_real_io=True)``, which lets sockets, subprocesses, signals and threads through.
    """

    def __init__(
        self, *, scheduler: Callable[[], Scheduler] | None = None, settings: LoopSettings | None = None
    ) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._settings = settings

    def new_event_loop(self) -> ControlledLoop:
        """Return a new controlled loop; usable as a ``loop_factory``."""
        scheduler = None if self._scheduler is None else self._scheduler()
        return ControlledLoop(scheduler, settings=self._settings)


def new_event_loop() -> ControlledLoop:
    """Return a controlled loop in default order, for ``asyncio.Runner(loop_factory=...)``."""
    return ControlledLoop()
