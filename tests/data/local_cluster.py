"""A Dask cluster of two workers for tests; prints its address and its workers' processes, and ends with its input.

Owns the cluster; must not know what runs on it.
"""

import json
import sys

if __name__ == "__main__":
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        pids = [nanny.pid for nanny in cluster.workers.values()]
        print(json.dumps({"address": cluster.scheduler_address, "pids": pids}), flush=True)
        sys.stdin.read()
