"""Bisection of an ordered list of releases.

Owns which ones are probed; must not know what makes one bad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affected:
    """What a bisection found. first, last: releases, or None where there is none in the list.

    before, after: the neighbours without a violation, or None at an end of the list.
    """

    first: str | None = None
    last: str | None = None
    before: str | None = None
    after: str | None = None


def bisect(versions: Sequence[str], is_bad: Callable[[str], bool], *, likely: Sequence[str] = ()) -> Affected:
    """Find the first and the last bad one of ``versions`` with few probes.

    versions: oldest first; the bad ones are assumed to be neighbours. likely: which of them to probe when
    both ends are good; its middle one only.
    """
    low, high = 0, len(versions) - 1
    inside = [index for index in (low, high) if is_bad(versions[index])]
    if not inside and likely:
        middle = versions.index(likely[len(likely) // 2])
        inside = [middle] if is_bad(versions[middle]) else []
    if not inside:
        return Affected()
    first = _boundary(low, inside[0], lambda index: is_bad(versions[index]))
    last = _boundary(high, inside[-1], lambda index: is_bad(versions[index]))
    return Affected(
        first=versions[first],
        last=versions[last],
        before=versions[first - 1] if first else None,
        after=versions[last + 1] if last < high else None,
    )


def _boundary(end: int, bad: int, is_bad: Callable[[int], bool]) -> int:
    """Return the last bad index on the way from ``bad`` to ``end``."""
    if bad == end or is_bad(end):
        return end
    good = end
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        if is_bad(middle):
            bad = middle
        else:
            good = middle
    return bad
