"""The storages of the LangGraph adapter: one file each, found by name.

Owns nothing itself; must not know searches. A storage is a checkpointer, or has ``connect``, which returns one as a
new process would, and ``abandon``, for when that process died.
"""
