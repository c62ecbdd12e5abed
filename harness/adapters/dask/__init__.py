"""Dask: a pool whose units run on a cluster.

Owns nothing by itself; must not load Dask, which only the bridge does.
"""
