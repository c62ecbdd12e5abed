"""The storages of the agent-framework adapter: one file each, found by name.

Owns nothing itself; must not know searches.
"""
