"""The folder of pages: which file a counterexample goes to, and that it can be written at all.

Owns file names and the one place where pages touch the disk; must not know what a page says.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness.adapters.jinja2 import render
from harness.model.errors import UsageError
from harness.model.explanation import Explanation
from harness.model.files import write_whole

_LONGEST = 150  # characters of a name; file systems allow 255 bytes


class PageFolder:
    """A folder that pages are written to; it is made with the first of them."""

    def __init__(self, folder: Path) -> None:
        """Raise UsageError when no file can be written there: before a search, not after it."""
        self.folder = folder
        self._owners: dict[str, str] = {}
        try:
            place = folder
            while not os.path.lexists(place):
                place = place.parent
            if not place.is_dir():
                raise UsageError(f"no pages can be written to {folder}: {place} is no folder")
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            raise UsageError(f"no pages can be written to {folder}: {error.strerror}") from error

    def write(self, explanation: Explanation, *, replay: str, export: str = "") -> Path:
        """Write the page of ``explanation`` and return its file; one of the same name is replaced.

        replay, export: see ``render``. Raises UsageError when the file cannot be written after all.
        """
        file = self.folder / self._name(explanation.setup)
        text = render(explanation, replay=replay, export=export)
        try:
            write_whole(file, text)
        except OSError as error:
            raise UsageError(f"the page {file} cannot be written: {error.strerror}") from error
        return file

    def _name(self, setup: Mapping[str, str]) -> str:
        """Return the name of a page, another one where two things would have the same."""
        owner = repr(sorted(setup.items()))
        name = page_name(setup)
        number = 1
        while self._owners.setdefault(name if number == 1 else f"{name}-{number}", owner) != owner:
            number += 1
        return (name if number == 1 else f"{name}-{number}") + ".html"


def page_name(setup: Mapping[str, str]) -> str:
    """Return the name of a page without its ending: the scenario, the storage and the fix, or the test.

    It is the same whenever and wherever the same thing fails.
    """
    parts = [setup["scenario"], setup.get("storage", ""), setup.get("fix", "")] if "scenario" in setup else []
    text = "-".join(filter(None, parts)) or setup.get("test", "") or "program"
    return re.sub(r"[^\w.]+", "-", text.removesuffix("]")).strip("-.")[:_LONGEST] or "program"
