"""Values, errors and registries that every other layer shares.

Owns the words of the project as types; must not know asyncio or any third party.
"""
