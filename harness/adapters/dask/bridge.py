"""The bridge: a process that carries units to a Dask cluster, and back what they came to.

Owns Dask's client and what a cluster must have to take part; must not know a unit.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from typing import Any

from distributed import Client

from harness.adapters.dask.places import close_places, identity, run_unit
from harness.model.errors import UsageError, WorkerError
from harness.runtime.clock import real_time
from harness.search.worker import Frames, frame, write_all

CONNECT_S = 3.0
# How long a cluster may be without a worker: one that died is started again.
ALONE_S = 30.0


def main() -> None:
    """Carry units between standard input and the cluster, and what they came to to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)  # Dask logs what it hears of its workers
    with contextlib.suppress(BrokenPipeError):
        try:
            Bridge(sys.argv[1], source, sink).serve()
        except Exception as error:
            write_all(sink, frame(("refused", 0, " ".join(str(error).split()))))
    os._exit(0)


class Bridge:
    """A client of a cluster, driven by messages."""

    def __init__(self, address: str, source: int, sink: int) -> None:
        self._address, self._source, self._sink = address, source, sink
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._seen_s = real_time()
        self._identity = identity()

    def serve(self) -> None:
        """Carry units until whoever sends them is gone."""
        threading.Thread(target=self._read, daemon=True).start()
        self._client = client = self._connect()
        self._check()
        self._say("ready", sum(worker["nthreads"] for worker in self._workers().values()))
        with contextlib.suppress(EOFError):
            while True:
                self._step()
        for future in self._futures.values():
            future.cancel()
        client.run(close_places)
        client.close(timeout=1)

    def _connect(self) -> Any:
        try:
            return Client(self._address, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
        except Exception as error:  # OSError, ValueError, or none of its own where a connection is just not made
            why = " ".join(f"{type(error).__name__} {error}".split())
            raise UsageError(f"no Dask scheduler answers at {self._address!r} ({why})") from error

    def _check(self) -> None:
        """Raise UsageError unless there are workers and all of them are as this process is."""
        client = self._client
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=CONNECT_S)
        if not self._workers():
            raise UsageError(f"the cluster at {self._address} has no workers")
        try:
            found = client.run(identity)
        except Exception as error:
            raise UsageError(
                f"workers of {self._address} have another harness than {self._identity}: {error}"
            ) from None
        for worker, other in sorted(found.items()):
            if other != self._identity:
                raise UsageError(f"the worker {worker} has {other}, but here is {self._identity}")

    def _workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _read(self) -> None:
        frames = Frames()
        while data := os.read(self._source, 1 << 16):
            for message in frames.feed(data):
                self._inbox.put(message)
        self._inbox.put(None)

    def _step(self) -> None:
        """Do what the next message says; look after the cluster when there is none. Raises EOFError at the end."""
        try:
            message = self._inbox.get(timeout=1.0)
        except queue.Empty:
            self._look_after()
            return
        if message is None:
            raise EOFError
        if isinstance(message, list):
            for number in message:
                if number in self._futures:
                    self._futures.pop(number).cancel()
            return
        number, content = message
        if isinstance(content, bytes):
            # Impure: equal units have answers of their own, whatever the cluster remembers of other searches.
            future = self._client.submit(run_unit, content, self._identity, pure=False)
            self._futures[number] = future
            future.add_done_callback(lambda done: self._inbox.put((number, done)))
        elif self._futures.pop(number, None) is not None:
            self._tell(number, content)

    def _tell(self, number: int, future: Any) -> None:
        if future.status == "finished":
            self._say("done", number, future.result())
        elif future.status == "error":
            error = future.exception()
            self._say("refused", number, f"on the cluster: {' '.join(str(error).split())}")
        else:
            self._say("refused", number, f"the cluster at {self._address} is gone")

    def _look_after(self) -> None:
        if self._client.status != "running":
            raise WorkerError(f"the connection to the cluster at {self._address} broke")
        if self._workers():
            self._seen_s = real_time()
        elif real_time() - self._seen_s > ALONE_S:
            raise WorkerError(f"no worker is left on the cluster at {self._address}")

    def _say(self, kind: str, number: int, answer: Any = None) -> None:
        write_all(self._sink, frame((kind, number, answer)))
