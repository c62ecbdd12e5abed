"""The processes that share what a command searches.

Owns which kind of pool ``--jobs`` and ``--cluster`` ask for; must not know what is searched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness.model.errors import UsageError
from harness.search.pool import Pool


def default_jobs() -> int:
    """Return how many processes this machine can run at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def open_pool(jobs: int | None, *, default: int, cluster: str | None) -> Iterator[Pool | None]:
    """Yield a pool, or None where this process does everything by itself; nothing of it is left at the end.

    jobs, cluster: as they were given. default: the jobs when neither was. Raises UsageError for both.
    """
    if jobs is not None and cluster is not None:
        raise UsageError("--jobs and --cluster exclude each other: a cluster has as many jobs as it has threads")
    jobs = jobs or default
    if cluster is not None:
        from harness.adapters.dask.cluster import Cluster

        with Cluster(cluster) as distant:
            yield distant
        return
    if jobs == 1 or os.name != "posix":
        yield None
        return
    from harness.search.processes import Processes

    with Processes(jobs) as pool:
        yield pool
