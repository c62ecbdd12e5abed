"""Text and numbers in a fingerprint: ids by first occurrence, times of the virtual clock by rank.

Owns what counts as an id and as a time; must not know the walk.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

# Executions begin here on the wall clock (adapters/freezegun.py); a time is one that lies within four months of it.
_EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
_EPOCH_S = _EPOCH.timestamp()
_SPAN_S = 1e7
_PATTERN = re.compile(
    r"(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b)"
    r"|(?P<time>2024-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:\+00:00|Z)?)"
)


class Time(float):
    """A moment of the virtual clock, in seconds since the epoch of executions."""


# Folders whose names differ from process to process.
_rooms: list[str] = []


@contextlib.contextmanager
def one_name(folder: str) -> Iterator[None]:
    """Write the path ``folder`` in every process as one name."""
    _rooms.append(folder)
    try:
        yield
    finally:
        _rooms.remove(folder)


def in_room(path: str) -> bool:
    """Return whether ``path`` lies in a folder of the search, which whoever keeps something there refers to."""
    return any(path.startswith(room) for room in _rooms)


class Texts:
    """The ids and times of one walk."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._times: list[int] = []  # where in the output they are

    def put(self, out: list[Any], value: Any) -> None:
        """Append a plain value to ``out``, its ids numbered; times are ranked at the end."""
        kind = type(value)
        if kind is str:
            if len(value) < 19:
                out.append(value)
                return
            for room in _rooms:
                value = value.replace(room, "(room)")
            for piece in _split(value):
                self.put_piece(out, piece)
            return
        if kind is float and _EPOCH_S <= value <= _EPOCH_S + _SPAN_S:
            self.put_piece(out, Time(round(value - _EPOCH_S, 6)))
            return
        out.append(value)

    def put_piece(self, out: list[Any], piece: Any) -> None:
        """Append a piece of text, an id or a time."""
        if type(piece) is Time:
            self._times.append(len(out))
            out.append(piece)
        elif type(piece) is tuple:
            out.append(("id", self._ids.setdefault(piece[0], len(self._ids))))
        else:
            out.append(piece)

    def put_datetime(self, out: list[Any], value: datetime.datetime) -> None:
        """Append a moment."""
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        since_s = (aware - _EPOCH).total_seconds()
        if 0 <= since_s <= _SPAN_S:
            self.put_piece(out, Time(since_s))
        else:
            out.append(str(value))

    def rank(self, out: list[Any]) -> None:
        """Replace each time in ``out`` by its rank among all."""
        ranks = {time: rank for rank, time in enumerate(sorted({out[place] for place in self._times}))}
        for place in self._times:
            out[place] = ("time", ranks[out[place]])


@lru_cache(maxsize=65536)
def _split(text: str) -> tuple[Any, ...]:
    """Split ``text`` into text, ids as 1-tuples, and times."""
    pieces: list[Any] = []
    end = 0
    for found in _PATTERN.finditer(text):
        if found.start() > end:
            pieces.append(text[end : found.start()])
        end = found.end()
        if found.lastgroup == "id":
            pieces.append((found.group(),))
        else:
            moment = datetime.datetime.fromisoformat(found.group().replace("Z", "+00:00"))
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
            pieces.append(Time((moment - _EPOCH).total_seconds()))
    if end < len(text) or not pieces:
        pieces.append(text[end:])
    return tuple(pieces)
