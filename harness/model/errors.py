"""Every exception that the harness raises.

Owns the wording of misuse and divergence; must not know how a program ended, which is data.
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base of everything that the harness raises on purpose."""


class UsageError(HarnessError, ValueError):
    """Wrong input by the user: one clear line, exit status 2."""


class MissingPackageError(UsageError):
    """Something that was chosen needs a package that is not installed, or not in a release that fits."""


class NothingBrokenError(UsageError):
    """A schedule was to be explained that breaks no promise."""


class TokenError(UsageError):
    """A schedule token is damaged or of an unknown version."""


class UncontrolledError(HarnessError, RuntimeError):
    """A program reached outside: a socket, a subprocess, a signal, a foreign thread."""


class DeadlockError(HarnessError, RuntimeError):
    """Nothing can run any more; the message holds who waits for what.

    Raised only where no execution collects the ending as data (``asyncio.run`` under the policy).
    """


class DivergenceError(HarnessError, RuntimeError):
    """A replay met another enabled set than the one recorded."""

    def __init__(self, *, choice: int, now_s: float, recorded: str, met: str) -> None:
        self.choice = choice
        self.now_s = now_s
        self.recorded = recorded
        self.met = met
        super().__init__(
            f"replay met other operations at choice {choice} (t={now_s:.6f} s)\n"
            f"  recorded: {recorded}\n"
            f"  now:      {met}\n"
            "Something outside the schedule decides here: the program changed, or a thread, a clock, "
            "uuid4 or set order."
        )


class TurnLimitError(HarnessError, RuntimeError):
    """An execution ran more turns than allowed."""


class StalledError(BaseException):
    """One turn blocked the loop in real time; raised inside it, with its stack.

    Derives from BaseException, as KeyboardInterrupt does: the program under test must not swallow it.
    """


class WorkerError(HarnessError, RuntimeError):
    """A process that shares a search died over its work, or cannot take part in it."""
