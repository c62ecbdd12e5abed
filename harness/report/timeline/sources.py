"""Source excerpts and stacks: what a page shows of the program, each line and each stack once.

Owns which lines are shown; must not know which turn they belong to.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass

from harness.model.explanation import Frame
from harness.report.timeline.words import short_path, short_place, split_place

AROUND = 4  # lines before and after a line of interest
MAX_WIDTH = 200  # characters of a line


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file. ident: its anchor. used: something happened here. gap: lines are left out before it."""

    ident: str
    number: int
    text: str
    used: bool
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of one file. file: as a reader would write it."""

    ident: str
    file: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A source line as something to go to. link: the anchor of it, or "" when the source is not there."""

    where: str
    function: str
    link: str
    text: str


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack, outermost frame first."""

    ident: str
    places: tuple[Place, ...]


class Sources:
    """The excerpts and stacks of one page. Mention every place first; ``place`` and the rest only read."""

    def __init__(self, places: Iterable[str], stacks: Iterable[tuple[Frame, ...]]) -> None:
        """places: ``file:line`` each, "" among them. stacks: those of the turns, empty ones among them."""
        self._stacks = {stack: f"k{number}" for number, stack in enumerate(dict.fromkeys(filter(None, stacks)), 1)}
        wanted: dict[str, set[int]] = {}
        for where in (*places, *(frame.where for stack in self._stacks for frame in stack)):
            file, line = split_place(where)
            if file:
                wanted.setdefault(file, set()).add(line)
        self._texts: dict[tuple[str, int], str] = {}
        self._idents: dict[tuple[str, int], str] = {}
        self.excerpts = tuple(filter(None, (self._excerpt(file, wanted[file]) for file in sorted(wanted))))

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """Every stack, in the order in which it came first."""
        return tuple(
            Stack(ident, tuple(self.place(frame.where, frame.function) for frame in stack))
            for stack, ident in self._stacks.items()
        )

    def stack_ident(self, stack: tuple[Frame, ...]) -> str:
        """Return the anchor of a stack, or "" for an empty one."""
        return self._stacks.get(stack, "")

    def place(self, where: str, function: str = "") -> Place:
        """Return what to show for ``file:line``."""
        key = split_place(where)
        return Place(short_place(where), function, self._idents.get(key, ""), self._texts.get(key, "").strip())

    def _excerpt(self, file: str, wanted: set[int]) -> Excerpt | None:
        source = [line.rstrip("\n").expandtabs(4) for line in linecache.getlines(file)]
        shown = sorted(
            {near for line in wanted for near in range(line - AROUND, line + AROUND + 1) if 0 < near <= len(source)}
        )
        if not shown:
            return None
        ident = f"s{len({name for name, _ in self._idents}) + 1}"
        lines = []
        for before, number in zip([0, *shown], shown, strict=False):
            text = source[number - 1]
            text = text if len(text) <= MAX_WIDTH else text[:MAX_WIDTH] + "…"
            self._texts[file, number] = text
            self._idents[file, number] = f"{ident}-{number}"
            lines.append(SourceLine(f"{ident}-{number}", number, text, number in wanted, number > before + 1))
        return Excerpt(ident, short_path(file), tuple(lines))
