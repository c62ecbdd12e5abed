"""Schedules and their token form.

Owns the exact, one-line form of an execution's choices; must not know how they are executed.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.model.choice import Decision
from harness.model.errors import TokenError
from harness.model.rung import Rung

_PREFIX = "h1."

Discipline = Literal["ranks", "indices", "turns"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The choices of one execution; everything not listed is option 0.

    decisions: sorted by index; only the non-default choices.
    discipline: how arrivals are decided. ``ranks``: one choice when an op is parked; ``indices``: one
    choice at each arrival; ``turns``: the same, from latency on a sleep may end long after its deadline, and in
    relaxed schedules callbacks and arrivals may overtake turns.
    setup: what the execution was set up with, such as the storage and the fix. Keys and values are text.
    facts: digest of what happened, 8 hex digits, the same on every Python; "" when no trace was kept.
    turns: ``X.Y:`` and the digest of every turn, comparable on Python X.Y only.
    """

    decisions: tuple[Decision, ...] = ()
    rung: Rung = Rung.LATENCY
    discipline: Discipline = "ranks"
    setup: Mapping[str, str] = field(default_factory=dict)
    facts: str = ""
    turns: str = ""

    @property
    def deviations(self) -> int:
        """How many choices differ from what stock asyncio would do."""
        return len(self.decisions)

    def plan(self) -> dict[int, int]:
        """Return position to value."""
        return {decision.index: decision.value for decision in self.decisions}

    def token(self) -> str:
        """Encode as one word of letters, digits, ``-``, ``_`` and ``.``."""
        payload: dict[str, Any] = {
            "c": [list(decision) for decision in self.decisions],
            "r": self.rung.label,
            "d": self.discipline,
            "s": dict(sorted(self.setup.items())),
            "f": self.facts,
            "t": self.turns,
        }
        raw = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
        body = zlib.compress(raw, 9, wbits=-15)
        check = zlib.crc32(raw).to_bytes(4, "big")
        return _PREFIX + base64.urlsafe_b64encode(check + body).decode().rstrip("=")


def parse_token(token: str) -> Schedule:
    """Decode ``token``.

    Raises TokenError when it is not one, is of another version, or was damaged on the way.
    """
    if not token.startswith(_PREFIX):
        raise TokenError(f"not a schedule token: {token[:24]!r} (a token begins with {_PREFIX!r})")
    text = token[len(_PREFIX) :]
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        raw = zlib.decompress(data[4:], wbits=-15)
        if zlib.crc32(raw).to_bytes(4, "big") != data[:4]:
            raise ValueError("checksum")
        payload = json.loads(raw)
        return Schedule(
            decisions=tuple(Decision(*item) for item in payload["c"]),
            rung=Rung.parse(payload["r"]),
            discipline=payload["d"],
            setup=payload["s"],
            facts=payload["f"],
            turns=payload["t"],
        )
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError) as error:
        raise TokenError(
            f"damaged schedule token: {token[:24]!r}... ({len(token)} characters); copy the whole word again"
        ) from error
