"""The line that moves while a command executes schedules.

Owns when it is shown and how; must not know what is executed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness.search.portfolio import Progress
from harness.search.target import Target


@contextmanager
def moving_line(target: Target) -> Iterator[Progress | None]:
    """Yield what shows how far the work on ``target`` is; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    title = f"{target.name} on {target.setup.get('storage', '')}"
    with Console(stderr=True).status(title) as status:

        def tick(executions: int, what: str) -> None:
            if executions % 5 == 1:
                status.update(f"{title}: {executions} executions ({what})")

        yield tick
