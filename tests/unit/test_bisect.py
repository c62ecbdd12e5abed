"""Bisection: the first and the last bad release, with few probes."""

import pytest

from harness.search.bisect import Affected, bisect

VERSIONS = [f"1.{minor}.0" for minor in range(16)]


def found(bad, *, likely=()):
    """Return the result for a range of bad minors, and how many releases were probed."""
    probed = set()

    def is_bad(version):
        probed.add(version)
        return int(version.split(".")[1]) in bad

    return bisect(VERSIONS, is_bad, likely=likely), len(probed)


@pytest.mark.parametrize(
    ("bad", "first", "last", "before", "after"),
    [
        (range(5, 16), "1.5.0", "1.15.0", "1.4.0", None),
        (range(10), "1.0.0", "1.9.0", None, "1.10.0"),
        (range(16), "1.0.0", "1.15.0", None, None),
        (range(15, 16), "1.15.0", "1.15.0", "1.14.0", None),
    ],
)
def test_a_bad_end_is_enough(bad, first, last, before, after):
    """One end of the list is bad: at most log2 probes more than the two ends."""
    result, probes = found(bad)
    assert result == Affected(first, last, before, after)
    assert probes <= 6


def test_a_range_in_the_middle_is_found_from_a_likely_release():
    """Both ends are good: the middle of the stated range is probed."""
    result, probes = found(range(4, 9), likely=["1.5.0", "1.6.0", "1.7.0"])
    assert result == Affected("1.4.0", "1.8.0", "1.3.0", "1.9.0")
    assert probes <= 10


def test_nothing_bad_is_nothing_found():
    """Neither an end nor the likely release."""
    assert found((), likely=["1.3.0"]) == (Affected(), 3)


def test_one_release():
    """The list may be that short."""
    assert bisect(["1.0.0"], lambda _: True) == Affected("1.0.0", "1.0.0")
