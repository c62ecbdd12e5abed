"""Schedulers, one file each; ``PLUGIN`` of a module makes a scheduler from a seed.

Owns nothing itself; must not know the loop.
"""
