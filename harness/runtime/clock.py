"""The two clocks: virtual ticks, and real seconds that nothing can freeze.

Owns the ticks and the saved real clock; must not know the loop.
"""

from __future__ import annotations

import time

# One microsecond per turn, so that the timestamps of successive turns order.
TICK_S = 1e-6
# And a little per read: a hundred of them make a turn.
READ_S = 1e-8

# In a tuple, because freezegun replaces module attributes that are the real clocks.
_REAL_CLOCKS = (time.monotonic,)


def real_time() -> float:
    """Return real monotonic seconds, also while freezegun is active."""
    return _REAL_CLOCKS[0]()
