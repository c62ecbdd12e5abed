"""Commands that are large enough for a file of their own.

Owns nothing itself; must not know each other.
"""
