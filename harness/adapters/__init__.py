"""Third parties, one per file or folder; nothing else in the package imports one.

Owns nothing itself; must not know the command line.
"""
