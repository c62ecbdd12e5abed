"""The watchdog: a turn that blocks in real time is interrupted and reported with its stack.

Owns the interval timer of a search; must not know what the turn was doing.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from harness.model.errors import StalledError

STALL_S = 1.25
_CHECK_S = 0.25
# Checks without progress, not seconds: a process that a busy machine leaves waiting is not checked either.
_CHECKS = round(STALL_S / _CHECK_S)


class _Watch:
    """What the handler compares: the loop that runs now and the turn that it was last seen in."""

    def __init__(self) -> None:
        self.loop: Any = None
        self.seen: tuple[Any, int, int] | None = None
        self.checks = 0
        self.interrupted = False

    def check(self, signum: int, frame: FrameType | None) -> None:
        loop = self.loop
        if loop is None:
            return
        # ops count as progress too: a job runs inline between two turns
        now = (loop, loop.turn, loop.choices)
        if loop.waiting_outside or self.seen is None or self.seen[0] is not loop or self.seen[1:] != now[1:]:
            self.seen, self.checks = now, 0
            return
        self.checks += 1
        if self.checks < _CHECKS:
            return
        self.seen = None
        stack = "".join(traceback.format_stack(frame)[-6:])
        loop.stalled = f"a turn blocked the event loop for {STALL_S:g} s of real time, in\n{stack.rstrip()}"
        raise StalledError(loop.stalled)

    def interrupt(self, signum: int, frame: FrameType | None) -> None:
        # Raised in a finalizer or swallowed by the program under test, the exception is lost; the note is not.
        # Between executions the note is enough, and nothing of ours is left half made.
        self.interrupted = True
        if self.loop is not None:
            raise KeyboardInterrupt


_watch = _Watch()


@contextlib.contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Remember Ctrl-C inside the context until ``raise_if_interrupted`` is called."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _watch.interrupted = False
    signal.signal(signal.SIGINT, _watch.interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt when Ctrl-C came since it was last raised here."""
    if _watch.interrupted:
        _watch.interrupted = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Watch the executions inside the context.

    Works on the main thread where nobody else uses SIGALRM; elsewhere it does nothing.
    """
    usable = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not usable or signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, signal.SIG_IGN):
        yield
        return
    before = signal.signal(signal.SIGALRM, _watch.check)
    signal.setitimer(signal.ITIMER_REAL, _CHECK_S, _CHECK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _watch.loop = _watch.seen = None


def attend(loop: Any) -> None:
    """Tell the watchdog which loop runs now; None for none."""
    _watch.loop = loop
