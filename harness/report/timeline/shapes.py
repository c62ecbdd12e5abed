"""The shapes of a drawing: boxes, bars, arrows, tracks and what is written over them.

Owns their coordinates as values, in CSS pixels at a font size of 16; must not know how they are found or rendered.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A turn, a callback, an arrival or a held turn. y: of its top. lines: what it says, none for a plain turn.

    ident: its anchor. turn: its number. track: index into the tracks. symbol: one character that tells its kind
    without colour. label: all of it, in one sentence. alike: it lies before the first difference to the other one.
    """

    ident: str
    turn: int
    track: int
    kind: str
    symbol: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    marks: tuple[str, ...]
    label: str
    alike: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """An op from the moment at which it was parked to its arrival, or to where it was given up."""

    name: str
    how: str
    x: float
    y: float
    width: float
    arrived: bool
    label: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A wake-up. path: of SVG."""

    cause: str
    woken: str
    path: str


@dataclass(frozen=True, slots=True)
class Track:
    """The lane of one task. name: as much of it as there is room for. middle: y of its line. begin, end: x of it."""

    name: str
    path: str
    y: float
    height: float
    middle: float
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Tick:
    """The number of a turn over its column, and the virtual time where there is room."""

    x: float
    turn: int
    time: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Where the clock jumps or rows are left out."""

    x: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of it.

    axis: the height of what is written over the tracks. differs: x from where on the other execution goes another way,
    or -1. broken: x of the violation, or -1.
    """

    width: float
    height: float
    axis: float
    tracks: tuple[Track, ...]
    boxes: tuple[Box, ...]
    bars: tuple[Bar, ...]
    arrows: tuple[Arrow, ...]
    ticks: tuple[Tick, ...]
    gaps: tuple[Gap, ...]
    differs: float
    broken: float
