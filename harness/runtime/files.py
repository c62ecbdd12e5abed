"""Files that a program writes by name: each of them is state.

Owns which paths were written to, and what is in them; must not know who asks.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_CHANGES = ("remove", "unlink", "rename", "replace", "rmdir", "mkdir", "truncate", "symlink", "link")
_WRITES = os.O_WRONLY | os.O_RDWR


@contextmanager
def watch_writes(note: Callable[[str], None]) -> Iterator[None]:
    """Call ``note`` with the path of each file that is opened for writing, made, moved or removed."""

    def heed(path: Any) -> None:
        if isinstance(path, (str, bytes, os.PathLike)):
            note(os.path.abspath(os.fsdecode(path)))

    plain, low = io.open, os.open  # the name that others look up

    @functools.wraps(plain)
    def opened(file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if not set(mode).isdisjoint("wax+"):
            heed(file)
        return plain(file, mode, *args, **more)

    @functools.wraps(low)
    def opened_low(path: Any, flags: int, *args: Any, **more: Any) -> Any:
        if flags & _WRITES:
            heed(path)
        return low(path, flags, *args, **more)

    def changed(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def change(*args: Any, **more: Any) -> Any:
            for path in args[:2]:
                heed(path)
            return real(*args, **more)

        return change

    kept = {name: getattr(os, name) for name in _CHANGES}
    ours: dict[str, Any] = {name: changed(real) for name, real in kept.items()}
    try:
        builtins.open = io.open = opened
        os.open = opened_low
        vars(os).update(ours)
        yield
    finally:
        builtins.open = io.open = plain
        os.open = low
        vars(os).update(kept)


def contents_of(paths: list[str]) -> list[tuple[str, bytes]]:
    """Return what is in files, beside their names; of a folder the names in it, of what is not there nothing."""
    found = []
    for path in paths:
        try:
            with io.open(path, "rb") as file:  # noqa: UP020  # not the one that is watched: it is read
                found.append((path, file.read()))
        except IsADirectoryError:
            found.append((path, "/".join(sorted(os.listdir(path))).encode()))
        except OSError:
            found.append((path, b"-"))
    return found
