"""Digests of what a storage holds, whatever it is.

Owns the comparison of contents across copies; must not know any framework.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def digest(held: Any) -> str:
    """Return 8 hex digits that are equal for equal contents, however they were stored."""
    return f"{zlib.crc32(repr(_plain(held, 0)).encode()):08x}"


def _plain(value: Any, depth: int) -> Any:
    """Return ``value`` as tuples and text, without addresses and without the order of sets and mappings."""
    if depth > 20:
        return type(value).__name__
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return value
    if isinstance(value, Mapping):
        return "mapping", tuple(sorted((repr(key), _plain(item, depth + 1)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        # storages that keep JSON give a list back for a tuple
        return "sequence", tuple(_plain(item, depth + 1) for item in value)
    if isinstance(value, set | frozenset):
        return "set", tuple(sorted(repr(_plain(item, depth + 1)) for item in value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = {item.name: getattr(value, item.name) for item in fields(value)}
    else:
        parts = {key: item for key, item in getattr(value, "__dict__", {}).items() if not key.startswith("__")}
    text = () if parts or " at 0x" in repr(value) else repr(value)
    return type(value).__name__, text, _plain(parts, depth + 1)
