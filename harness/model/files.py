"""Files that are written whole or not at all.

Owns the writing; must not know what a file says.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Write ``text`` to ``file`` so that nobody reads half of it; folders that are missing are made.

    Raises OSError, and whatever interrupts it, with nothing left behind.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)  # others read it, such as an artefact of a CI run
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
