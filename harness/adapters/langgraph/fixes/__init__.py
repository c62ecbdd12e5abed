"""Fix candidates of LangGraph: one file each, found by name.

Owns nothing itself; must not know searches.
"""
