"""The local pool: worker processes on this machine.

Owns their birth, their death and which unit is where; must not know what a unit does.

A worker is forked from this process where nothing but its main thread runs, and a new interpreter elsewhere. A worker
that dies has its unit run again, once; one that says nothing for too long is ended, which is the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.model.errors import UsageError, WorkerError
from harness.runtime import watchdog
from harness.runtime.clock import real_time
from harness.search.pool import Recipe, Unit
from harness.search.worker import Frames, frame, work, write_all

LIMIT_S = 60.0
# How much later than the worker itself this process gives it up.
GRACE_S = 5.0
# Units that a worker has at a time: it need not wait for the next one.
DEPTH = 2
# A forked worker cannot be replaced once this process has opened a target, so that some more wait.
SPARES = 3
_WAIT_S = 0.1
_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from harness.search.worker import main; main()"


@dataclass(slots=True)
class Task:
    """A unit on its way. deaths: of workers that ran it."""

    number: int
    recipe: Recipe
    unit: Unit
    deaths: int = 0


@dataclass(slots=True, eq=False)
class Hand:
    """A worker as this process knows it. heard_s: when it last said something, or was given its first unit."""

    pid: int
    send: int
    receive: int
    folder: Path
    frames: Frames = field(default_factory=Frames)
    tasks: deque[Task] = field(default_factory=deque)
    heard_s: float = 0.0


class Processes:
    """A pool of worker processes; a context manager that leaves none of them behind.

    limit_s: real seconds without a sign of life after which a worker is given up. forked: None where it may be decided.
    """

    unit_s = 0.05

    def __init__(self, jobs: int, *, limit_s: float = LIMIT_S, forked: bool | None = None) -> None:
        if os.name != "posix":
            raise UsageError("several jobs need a POSIX system: use --jobs 1")
        self.kin = may_fork() if forked is None else forked
        self.jobs = jobs
        self._limit_s = limit_s
        self._stopped = False
        self._count = 0
        self._waiting: deque[Task] = deque()
        self._wanted: set[int] = set()
        self._done: deque[tuple[int, Any]] = deque()
        self._workers: list[Hand] = []
        self._spares: list[Hand] = []
        self._selector = selectors.DefaultSelector()
        self._folder = tempfile.TemporaryDirectory(prefix="harness-jobs-")

    def __enter__(self) -> Processes:
        try:
            for _ in range(self.jobs):
                self._workers.append(self._start())
            if self.kin:
                self._spares = [self._start() for _ in range(SPARES)]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what a pool offers ------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many units it takes at the moment, so that nobody has to wait for work."""
        return max(0, DEPTH * self.jobs - len(self._waiting) - sum(len(worker.tasks) for worker in self._workers))

    def submit(self, recipe: Recipe, unit: Unit) -> int:
        """Take a unit; return its number."""
        self._count += 1
        self._wanted.add(self._count)
        self._waiting.append(Task(self._count, recipe, unit))
        self._hand_out()
        return self._count

    def next(self) -> tuple[int, Any]:
        """Wait until any unit is done; return its number and what it came to."""
        if not self._wanted and not self._done:
            raise WorkerError("no unit is under way")
        while not self._done:
            if self._stopped:
                raise WorkerError("the pool was stopped")
            watchdog.raise_if_interrupted()
            for key, _ in self._selector.select(_WAIT_S):
                self._hear(key.data)
            self._give_up_silent()
        return self._done.popleft()

    def forget(self, numbers: Collection[int] | None = None) -> None:
        """Drop these units, or all; those that are under way end soon."""
        dropped = self._wanted & set(self._wanted if numbers is None else numbers)
        self._wanted -= dropped
        self._waiting = deque(task for task in self._waiting if task.number in self._wanted)
        self._done = deque(item for item in self._done if numbers is not None and item[0] not in numbers)
        for worker in self._workers:
            lost = [task.number for task in worker.tasks if task.number in dropped]
            if lost:
                self._tell(worker, lost)

    def stop(self) -> None:
        """End every worker from another thread; who waits for a unit gets a WorkerError, and is to close the pool."""
        self._stopped = True
        for worker in self._workers:
            os.kill(worker.pid, signal.SIGKILL)

    def close(self) -> None:
        """End every worker, at once."""
        for worker in [*self._workers, *self._spares]:
            self._end(worker)
        self._workers, self._spares = [], []
        self._selector.close()
        self._folder.cleanup()

    # -- what workers say --------------------------------------------------------------------------

    def _hear(self, worker: Hand) -> None:
        """Read what a worker says; keep what is done and still wanted."""
        if worker in self._spares:
            self._spares.remove(worker)
            self._end(worker)
        if worker not in self._workers:
            return
        data = os.read(worker.receive, 1 << 20)
        if not data:
            self._bury(worker)
            return
        worker.heard_s = real_time()
        for kind, number, answer in worker.frames.feed(data):
            if kind == "beat":
                continue
            worker.tasks.popleft()
            self._hand_out()
            if number not in self._wanted:
                continue
            self._wanted.remove(number)
            if kind == "refused":
                raise WorkerError(answer)
            self._done.append((number, answer))

    def _give_up_silent(self) -> None:
        for worker in list(self._workers):
            if worker.tasks and real_time() - worker.heard_s > self._limit_s + GRACE_S:
                self._bury(worker)

    def _bury(self, worker: Hand) -> None:
        """Take the units of a worker that died to others; raises WorkerError for one that killed two."""
        said, status = _last_words(worker.folder), self._end(worker)
        self._workers.remove(worker)
        lost = list(worker.tasks)
        if lost:
            lost[0].deaths += 1  # it runs them in order
        self._waiting.extendleft(reversed([task for task in lost if task.number in self._wanted]))
        self._workers.append(self._replacement(status))
        if lost and lost[0].deaths > 1 and lost[0].number in self._wanted:
            raise WorkerError(
                f"two worker processes died over the same work ({status}{f': {said}' if said else ''}); "
                "--jobs 1 does it in this process"
            )
        self._hand_out()

    def _replacement(self, status: str) -> Hand:
        if not self.kin:
            return self._start()
        if not self._spares:
            raise WorkerError(f"{SPARES + 1} worker processes died, the last by {status}")
        return self._spares.pop()

    def _hand_out(self) -> None:
        """Give waiting units to those who have the fewest."""
        while self._waiting:
            if not self._workers:
                raise WorkerError("every worker process died")
            worker = min(self._workers, key=lambda worker: len(worker.tasks))
            if len(worker.tasks) >= DEPTH:
                return
            task = self._waiting.popleft()
            if not worker.tasks:
                worker.heard_s = real_time()
            worker.tasks.append(task)
            self._tell(worker, (task.number, task.recipe, task.unit))

    def _tell(self, worker: Hand, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # it died, as its other pipe will tell
            write_all(worker.send, frame(message))

    # -- birth and death ---------------------------------------------------------------------------

    def _start(self) -> Hand:
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        theirs, send = os.pipe()
        receive, their_sink = os.pipe()
        pid = (self._fork if self.kin else self._spawn)(theirs, their_sink, folder, (send, receive))
        os.close(theirs)
        os.close(their_sink)
        worker = Hand(pid, send, receive, folder)
        self._selector.register(receive, selectors.EVENT_READ, worker)
        return worker

    def _fork(self, source: int, sink: int, folder: Path, ours: tuple[int, int]) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the worker ignores it
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            return pid
        try:
            # Ends of pipes that a worker keeps open would hide the death of the others, and of this process.
            others = [fd for worker in [*self._workers, *self._spares] for fd in (worker.send, worker.receive)]
            for fd in (*ours, *others):
                os.close(fd)
            work(source, sink, folder=str(folder), limit_s=self._limit_s)
        finally:
            os._exit(1)

    def _spawn(self, source: int, sink: int, folder: Path, ours: tuple[int, int]) -> int:
        flags = ["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []
        command = [sys.executable, *flags, "-c", _START, json.dumps(sys.path), str(folder), str(self._limit_s)]
        # Sets of texts iterate alike in all of them.
        environment = {**os.environ, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
        actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, sink, 1)]
        return os.posix_spawn(sys.executable, command, environment, file_actions=actions, setsigmask=[signal.SIGINT])

    def _end(self, worker: Hand) -> str:
        """End a worker and wait for it; return how it ended."""
        self._selector.unregister(worker.receive)
        os.kill(worker.pid, signal.SIGKILL)
        _, status = os.waitpid(worker.pid, 0)
        os.close(worker.send)
        os.close(worker.receive)
        if os.WIFSIGNALED(status):
            return f"signal {os.WTERMSIG(status)}"
        return f"status {os.waitstatus_to_exitcode(status)}"


def may_fork() -> bool:
    """Return whether this process may be forked: it has one thread, also of those that Python does not know."""
    if sys.platform == "darwin" or threading.active_count() > 1:
        return False
    tasks = Path("/proc/self/task")
    return not tasks.is_dir() or len(list(tasks.iterdir())) == 1


def _last_words(folder: Path) -> str:
    """Return the innermost line of what a worker wrote before it died, or ""."""
    try:
        lines = (folder / "errors").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    stacks = [number for number, line in enumerate(lines) if "most recent call first" in line]
    at = stacks[-1] + 1 if stacks else len(lines) - 1  # the main thread is the oldest, and comes last
    return lines[at].strip() if 0 <= at < len(lines) else ""
