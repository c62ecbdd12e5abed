"""Reports: what a search found, for people and for tools.

Owns the wording; must not know how anything was found.
"""
