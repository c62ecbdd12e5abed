"""One process that runs units: it reads them from a pipe and writes to another what they came to.

Owns the messages, the heartbeat and the end of such a process; must not know a pool nor what a unit does.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import pickle
import queue
import shutil
import signal
import struct
import sys
import tempfile
import threading
import traceback
from typing import Any

from harness.model.errors import HarnessError
from harness.runtime.clock import real_time
from harness.search.pool import Bench, Recipe

# A pipe that carries messages may not carry what programs print, so 0 and 1 are others in such a process.
SIZE = struct.Struct(">Q")
BEAT_S = 0.2


def frame(message: Any) -> bytes:
    """Return ``message`` as bytes that say how many they are."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return SIZE.pack(len(data)) + data


def write_all(pipe: int, data: bytes) -> None:
    """Write all of ``data``; raises OSError when nobody reads it."""
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


class Frames:
    """Puts messages together from the pieces in which a pipe yields them."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Return the messages that are complete now."""
        self._buffer += data
        found = []
        while len(self._buffer) >= SIZE.size:
            end = SIZE.size + SIZE.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                break
            found.append(pickle.loads(memoryview(self._buffer)[SIZE.size : end]))
            del self._buffer[:end]
        return found


class Worker:
    """Runs units one after another; keeps the target of the last one open."""

    def __init__(self, source: int, sink: int, *, limit_s: float) -> None:
        """source, sink: pipes. limit_s: an execution that takes longer, in real seconds, ends this process."""
        self._source, self._sink, self._limit_s = source, sink, limit_s
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._recipe: Recipe | None = None
        self._bench: Bench | None = None
        self._number = 0
        self._dropped: set[int] = set()
        self._beaten = 0.0
        self._executions = 0

    def serve(self) -> None:
        """Run units until whoever sends them is gone; does not return."""
        threading.Thread(target=self._receive, daemon=True).start()
        while True:
            number, recipe, unit = self._inbox.get()
            self._number = number
            self._beat()
            try:
                self._heed()
                answer = "done", number, unit.run(self._bench_of(recipe))
            except KeyboardInterrupt:
                answer = "dropped", number, None
            except MemoryError:
                os._exit(1)  # others may have more; nothing here can be trusted now
            except HarnessError as error:
                answer = "refused", number, str(error)
            except BaseException as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                said = " ".join(f"{type(error).__name__}: {error}".split())
                answer = "refused", number, f"a worker process failed: {said} ({place.filename}:{place.lineno})"
            faulthandler.cancel_dump_traceback_later()
            write_all(self._sink, frame(answer))

    def _receive(self) -> None:
        """Take in units; when the sender is gone, nobody wants what is under way."""
        frames = Frames()
        while data := os.read(self._source, 1 << 16):
            for message in frames.feed(data):
                if isinstance(message, list):
                    self._dropped.update(message)
                else:
                    self._inbox.put(message)
        folder = tempfile.gettempdir()
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(folder))  # of the sender's folder, by the last worker that leaves it
        os._exit(0)

    def _bench_of(self, recipe: Recipe) -> Bench:
        if self._bench is None or recipe != self._recipe:
            if self._bench is not None:
                self._bench.close()
                self._bench = None
            self._bench = Bench(recipe.target())
            self._recipe = recipe
            self._bench.runner.session.on_begin.append(self._begin)
        return self._bench

    def _begin(self, _: Any) -> None:
        self._heed()
        self._executions += 1
        if real_time() - self._beaten > BEAT_S:
            self._beat()
            write_all(self._sink, frame(("beat", -1, self._executions)))

    def _heed(self) -> None:
        if self._number in self._dropped:
            raise KeyboardInterrupt  # what every search ends with at once

    def _beat(self) -> None:
        # Ends the process also where no Python code runs any more, and leaves the stack in its errors.
        self._beaten = real_time()
        faulthandler.dump_traceback_later(self._limit_s, exit=True)


def work(source: int, sink: int, *, folder: str, limit_s: float) -> None:
    """Be a worker process; does not return. folder: a directory of its own, for temporary files and its errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the sender ends us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        errors = os.open(os.path.join(folder, "errors"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number, kept in ((0, nothing), (1, nothing), (2, errors)):
            os.dup2(kept, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        tempfile.tempdir = folder
        logging.getLogger().addHandler(logging.NullHandler())  # programs under test log their failures
        Worker(source, sink, limit_s=limit_s).serve()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> None:
    """Be a worker process whose pipes are its standard input and output."""
    folder, limit_s = sys.argv[1:3]
    work(os.dup(0), os.dup(1), folder=folder, limit_s=float(limit_s))
