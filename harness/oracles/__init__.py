"""Oracles, one file each: pure judges over the journal of an execution.

Owns nothing itself; must not know the loop. ``PLUGIN`` of a module is a function from a journal to a
Violation or None.
"""
