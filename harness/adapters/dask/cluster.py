"""The pool of a Dask cluster, which starts again elsewhere what a worker that died had begun.

Owns the process that speaks to the cluster, the *bridge*, and what is wanted of it; must not load Dask: its client
needs a loop and threads whose clock runs on, and a search stops the clock.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pickle
import select
import signal
import sys
from collections import deque
from collections.abc import Collection
from types import TracebackType
from typing import Any

from harness.model.errors import MissingPackageError, UsageError, WorkerError
from harness.runtime import watchdog
from harness.runtime.clock import real_time
from harness.search.pool import Recipe, Unit
from harness.search.worker import Frames, frame, write_all

# Units that each thread of the cluster has at a time.
DEPTH = 2
_WAIT_S = 0.1
_CLOSE_S = 3.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from harness.adapters.dask.bridge import main; main()"
)


class Cluster:
    """The pool of a Dask cluster; a context manager. Raises UsageError when the cluster cannot take part."""

    kin = False
    unit_s = 0.3

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise MissingPackageError("--cluster needs the package distributed: pip install 'harness[cluster]'")
        self._address = address
        self.jobs = 0
        self._count = 0
        self._wanted: set[int] = set()
        self._done: deque[tuple[int, Any]] = deque()
        self._frames = Frames()
        self._pid = 0

    def __enter__(self) -> Cluster:
        theirs, self._send = os.pipe()
        self._receive, their_sink = os.pipe()
        command = [sys.executable, "-c", _START, json.dumps(sys.path), self._address]
        actions = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, their_sink, 1)]
        masked = [signal.SIGINT]  # Ctrl-C is ours to handle
        self._pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setsigmask=masked)
        os.close(theirs)
        os.close(their_sink)
        try:
            while not self.jobs:
                self._hear()
        except WorkerError as error:
            self.close()
            raise UsageError(str(error)) from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def room(self) -> int:
        """How many units it takes at the moment."""
        return max(0, DEPTH * self.jobs - len(self._wanted))

    def submit(self, recipe: Recipe, unit: Unit) -> int:
        """Take a unit; return its number."""
        self._count += 1
        self._wanted.add(self._count)
        self._say((self._count, pickle.dumps((recipe, unit))))
        return self._count

    def next(self) -> tuple[int, Any]:
        """Wait until any unit is done; return its number and what it came to."""
        while not self._done:
            self._hear()
        return self._done.popleft()

    def forget(self, numbers: Collection[int] | None = None) -> None:
        """Drop these units, or all; those that are under way go on to their end."""
        dropped = self._wanted & set(self._wanted if numbers is None else numbers)
        self._wanted -= dropped
        self._done = deque(item for item in self._done if numbers is not None and item[0] not in numbers)
        self._say(list(dropped))

    def close(self) -> None:
        """Leave the cluster; end the processes that units left on it."""
        os.close(self._send)
        until = real_time() + _CLOSE_S
        with contextlib.suppress(OSError):
            while select.select([self._receive], [], [], max(0.0, until - real_time()))[0]:
                if not os.read(self._receive, 1 << 16):
                    break
        os.close(self._receive)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def _say(self, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # its other pipe will tell
            write_all(self._send, frame(message))

    def _hear(self) -> None:
        watchdog.raise_if_interrupted()
        if not select.select([self._receive], [], [], _WAIT_S)[0]:
            return
        data = os.read(self._receive, 1 << 20)
        if not data:
            raise WorkerError(f"the connection to the cluster at {self._address} broke")
        for kind, number, answer in self._frames.feed(data):
            if kind == "ready":
                self.jobs = number
            elif kind == "refused" and (not number or number in self._wanted):
                raise WorkerError(answer)
            elif kind == "done" and number in self._wanted:
                self._wanted.remove(number)
                self._done.append((number, pickle.loads(answer)))
