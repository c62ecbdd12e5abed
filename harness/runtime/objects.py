"""Ordinary objects in a fingerprint: instances, folders, databases.

Owns which types are constant, which can be read and which cannot; must not know the loop.
"""

from __future__ import annotations

import collections
import contextvars
import datetime
import decimal
import functools
import sqlite3
import types
import uuid
import weakref
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from harness.runtime import hidden, programs

if TYPE_CHECKING:
    from harness.runtime.fingerprint import Walk
    from harness.runtime.readers import Handler

_Pair = collections.namedtuple("_Pair", "one")  # for the type of its field

# Taken as constant while a program runs: code, classes of libraries, and what only observes.
_CONSTANT_TYPES = (
    types.TracebackType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MemberDescriptorType,
    type(_Pair.one),
    contextvars.ContextVar,
    datetime.tzinfo,
    datetime.timedelta,
    datetime.date,
)
_CONSTANT_MODULES = (
    "opentelemetry",
    "typing",
    "logging",
    "freezegun",
    "_thread",
    "_abc",
    "annotationlib",
    "pydantic_core",
)
_IMMUTABLE_TYPE, _HEAP_TYPE = 1 << 8, 1 << 9
_C_MEMBERS = (
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
)
# A bigger folder or database would cost more than the executions that it spares.
MAX_READ = 1 << 20


def handler_of(value: Any) -> Handler:
    """Return how to read ``value``, whose type no special handler knows."""
    kind = type(value)
    if isinstance(value, type):
        return programs.put_class
    if (reader := hidden.reader_of(value)) is not None:
        return lambda walk, item: _put_read(walk, item, reader(item))
    if isinstance(value, datetime.datetime):
        return lambda walk, moment: walk._texts.put_datetime(walk.out, moment)
    if isinstance(value, _CONSTANT_TYPES) or kind.__module__.partition(".")[0] in _CONSTANT_MODULES:
        return put_constant
    if isinstance(value, (weakref.ref, weakref.ProxyTypes)):
        return _put_weak
    if isinstance(value, sqlite3.Connection):
        return _put_database
    if isinstance(value, PurePath):
        return _put_path
    if isinstance(value, (decimal.Decimal, decimal.Context, bytearray)):
        return lambda walk, item: walk.put(repr(item))
    if isinstance(value, uuid.UUID):
        return lambda walk, item: walk.ref(str(item))
    if isinstance(value, (staticmethod, classmethod)):
        return lambda walk, wrapper: walk.ref(wrapper.__func__)
    if isinstance(value, functools.partial):
        return lambda walk, part: walk.refs((part.func, part.args, part.keywords))
    if "BaseEventLoop" in {base.__name__ for base in kind.__mro__}:
        return put_constant
    if kind.__flags__ & _HEAP_TYPE and _all_python(kind):
        return put_instance
    return _put_opaque


def _all_python(kind: type) -> bool:
    """Return whether no base of ``kind`` keeps state in C."""
    return not any(map(_keeps_state_in_c, kind.__mro__)) and hasattr(kind, "__dict__")


def _keeps_state_in_c(kind: type) -> bool:
    """Return whether C code wrote ``kind`` and gave its instances more room than ``object`` has.

    The flag of heap types does not tell: since 3.12 ``io.BytesIO`` has it too, and so has ``typing.Generic``, which
    has no state.
    """
    if kind.__basicsize__ == object.__basicsize__:
        return False
    if not kind.__flags__ & _HEAP_TYPE or kind.__flags__ & _IMMUTABLE_TYPE:
        return True
    return any(
        isinstance(member, _C_MEMBERS) and member.__objclass__ is kind and name not in ("__dict__", "__weakref__")
        for name, member in vars(kind).items()
    )


def _put_read(walk: Walk, value: Any, state: tuple[Any, ...]) -> None:
    walk.put(type(value).__qualname__)
    walk.refs(state)
    if not isinstance(value, hidden.BARE):
        put_attributes(walk, value)


def put_constant(walk: Walk, value: Any) -> None:
    """Append what is taken as constant: its type, and its name where it has one."""
    walk.put(type(value).__name__, getattr(value, "__name__", ""))
    if isinstance(value, (datetime.date, datetime.timedelta, datetime.tzinfo)):
        walk.put(str(value))


def put_instance(walk: Walk, value: Any) -> None:
    """Append an instance of a Python class by its attributes."""
    walk.put(type(value).__qualname__)
    put_attributes(walk, value)


def put_attributes(walk: Walk, value: Any) -> None:
    """Append what is in ``__dict__`` and in slots, and a class of the program."""
    kind, out, ref = type(value), walk.out, walk.ref
    if programs.is_program(kind.__module__):
        ref(kind)
    own = getattr(value, "__dict__", None)
    if own:
        for name, item in list(own.items()):
            out.append(name)
            ref(item)
    for name in _slots_of(kind):  # type: ignore[arg-type]  # mypy does not see that types hash
        try:
            item = object.__getattribute__(value, name)
        except AttributeError:
            continue
        walk.put(name)
        walk.ref(item)


@functools.cache
def _slots_of(kind: Any) -> tuple[str, ...]:
    names: list[str] = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                names.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return tuple(names)


def _put_weak(walk: Walk, value: Any) -> None:
    walk.put("weak")
    walk.ref(value() if isinstance(value, weakref.ref) else None)


def _put_database(walk: Walk, value: sqlite3.Connection) -> None:
    """Append what a SQLite database holds, with an open transaction as its connection sees it."""
    walk.put("database", value.in_transaction)
    for number, line in enumerate(value.iterdump()):
        walk.ref(line)
        if number > MAX_READ >> 8:
            walk.unseen.add("a large SQLite database")
            return


def _put_path(walk: Walk, value: Any) -> None:
    """Append what is in a folder, by content and not by name: names may be ids."""
    if not isinstance(value, Path) or not value.is_dir():
        walk.ref(str(value))
        return
    walk.put("folder")
    found = [path for path in sorted(value.rglob("*")) if path.is_file()]
    if sum(path.stat().st_size for path in found) > MAX_READ:
        walk.unseen.add("a large folder")
        return
    from harness.runtime.texts import _PATTERN

    texts = [f"{path.relative_to(value)}\n{path.read_bytes().decode(errors='backslashreplace')}" for path in found]
    for text in sorted(texts, key=lambda text: _PATTERN.sub("", text)):
        walk.ref(text)


def _put_opaque(walk: Walk, value: Any) -> None:
    """Append what C code shows of itself to the collector, and remember that this may not be all."""
    import gc

    kind = type(value)
    walk.put(f"{kind.__module__}.{kind.__qualname__}")
    walk.unseen.add(f"{kind.__module__}.{kind.__qualname__}")
    put_attributes(walk, value)
    walk.refs(item for item in gc.get_referents(value) if not isinstance(item, (type, dict)))
