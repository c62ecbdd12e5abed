"""The ladder of assumptions that a schedule may need.

Owns the three rungs and their order; must not know how a loop decides which one applies.
"""

from __future__ import annotations

import enum

from harness.model.registry import unknown


class Rung(enum.IntEnum):
    """The least assumption that admits a schedule; a higher value assumes more."""

    EXACT = 0
    LATENCY = 1
    RELAXED = 2

    @property
    def label(self) -> str:
        """The lower-case word used on the command line and in reports."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Rung:
        """Return the rung called ``text``; raises UsageError for an unknown one."""
        if text.upper() not in cls.__members__:
            raise unknown("rung", name=text, known=[rung.label for rung in cls])
        return cls[text.upper()]
