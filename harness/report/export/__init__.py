"""Exports: a failing schedule as a plain asyncio program that needs no searching.

Owns the cutting of source, the gates and the layout of a file; must not know a framework.
"""
