"""What runs on a Dask worker: units, in a worker process of the local pool for each thread of it.

Owns these processes and what a worker must be to take part; must not know who sends units.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import harness
from harness.model.errors import WorkerError
from harness.search.processes import Processes


class Identity(NamedTuple):
    """What must be the same wherever a search runs. files: a digest of the harness's own."""

    version: str
    files: str
    python: str

    def __str__(self) -> str:
        return f"harness {self.version} ({self.files}) on Python {self.python}"


def identity() -> Identity:
    """Return what this process is."""
    digest = hashlib.blake2b(digest_size=4)
    for file in sorted(Path(harness.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return Identity(harness.__version__, digest.hexdigest(), f"{sys.version_info.major}.{sys.version_info.minor}")


_local = threading.local()
_places: list[Place] = []


class Place:
    """The worker process of one thread of a Dask worker."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool = Processes(1, forked=False)
        self.pool.__enter__()

    def close(self) -> None:
        """End the process."""
        self.pool.close()
        _places.remove(self)


def run_unit(payload: bytes, expected: Identity) -> bytes:
    """Run one unit in a process beside this Dask worker; return what it came to, pickled."""
    if identity() != expected:
        raise WorkerError(f"a worker has {identity()}, but here is {expected}")
    place: Place | None = getattr(_local, "place", None)
    if place is None or place not in _places:
        place = _local.place = Place()
        _places.append(place)
    with place.lock:
        recipe, unit = pickle.loads(payload)
        try:
            place.pool.submit(recipe, unit)
            return pickle.dumps(place.pool.next()[1])
        except BaseException:
            place.close()
            raise


def close_places() -> None:
    """End the processes of this Dask worker: at once where no unit runs, and else when it does not any more."""
    for place in list(_places):
        if place.lock.acquire(blocking=False):
            place.close()
        else:
            place.pool.stop()
