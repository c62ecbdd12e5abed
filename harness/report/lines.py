"""Lines with styles: what a report says, apart from whether colours can be shown.

Owns wrapping, and the words for styles; must not know a terminal.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable
from typing import Literal, NamedTuple

# What a span is, rather than how it looks: "" for plain text.
Style = Literal["", "title", "bad", "good", "key", "dim", "command"]

# The width where nobody looks through a terminal.
PIPED = 100


class Span(NamedTuple):
    """A part of a line."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


def plain(lines: Iterable[Line]) -> str:
    """Return ``lines`` as text."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def labelled(label: str, text: str, *, width: int, style: Style = "", limit: int = 3) -> list[Line]:
    """Return ``text`` behind a label, wrapped to ``width`` columns, at most ``limit`` lines long."""
    head = f"  {label.ljust(LABEL)}"
    wrapped = [part for line in text.splitlines() or [""] for part in wrap(relative(line), width - len(head))]
    if len(wrapped) > limit:
        wrapped = [*wrapped[: limit - 1], f"... {len(wrapped) - limit + 1} more lines"]
    return [
        (Span(head if not index else " " * len(head), "dim"), Span(line, style)) for index, line in enumerate(wrapped)
    ]


LABEL = 10


def wrap(text: str, width: int) -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns; the indentation of the first one is kept."""
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text,
        max(width, 8),
        initial_indent="",
        subsequent_indent=f"{indent}  " if indent else "",
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]


def shorten(text: str, width: int) -> str:
    """Return ``text`` cut to ``width`` columns; what is left out is marked."""
    return text if len(text) <= width else f"{text[: width - 2]}.."


def relative(text: str) -> str:
    """Shorten the paths in ``text``: those under the current folder, and those of installed packages."""
    text = text.replace(os.getcwd() + os.sep, "")
    head, found, tail = text.rpartition(f"{os.sep}site-packages{os.sep}")
    return f"{head.rpartition(' ')[0]} {tail}".strip() if found else text


def counted(number: int, what: str) -> str:
    """Return a number with its noun, of which there is one or there are several."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
