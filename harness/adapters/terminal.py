"""Lines on a terminal: colours where they can be seen, and the width that there is.

Owns what a style looks like in rich's and in pytest's words; must not know what a report says.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.report.lines import PIPED, Line, Style, plain

_RICH: dict[Style, str] = {
    "title": "bold",
    "bad": "red",
    "good": "green",
    "key": "bold",
    "dim": "dim",
    "command": "cyan",
}
_PYTEST: dict[Style, dict[str, bool]] = {
    "title": {"bold": True},
    "bad": {"red": True},
    "good": {"green": True},
    "key": {"bold": True},
    "dim": {"light": True},
    "command": {"cyan": True},
}


def width_of(stream: Any = None) -> int:
    """Return the columns of the terminal that ``stream`` (default: standard output) is, or 100."""
    stream = sys.stdout if stream is None else stream
    return shutil.get_terminal_size((PIPED, 40)).columns if stream.isatty() else PIPED


def program_name() -> str:
    """Return how this command line was called, so that a line that we print can be pasted."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return "python -m harness"
    on_path = shutil.which("harness")
    if on_path is not None and Path(on_path).resolve() == called.resolve():
        return "harness"
    return os.path.relpath(called) if called.name == "harness" else "harness"


def echo(lines: Sequence[Line]) -> None:
    """Print ``lines`` on standard output, with colours on a terminal and where FORCE_COLOR asks for them."""
    if not sys.stdout.isatty() and not os.environ.get("FORCE_COLOR"):
        print(plain(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for line in lines:
        console.print(Text.assemble(*((span.text, _RICH.get(span.style, "")) for span in line)), soft_wrap=True)


def write(writer: Any, lines: Sequence[Line]) -> None:
    """Write ``lines`` with a ``TerminalWriter`` of pytest, which knows whether colours can be seen."""
    for line in lines:
        for span in line:
            writer.write(span.text, **_PYTEST.get(span.style, {}))
        writer.line()
