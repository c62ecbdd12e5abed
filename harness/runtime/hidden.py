"""State that Python keeps outside of attributes: in objects of C, in code, and of the process.

Owns what can be read of it, one reader per type; must not know the walk's queue, nor what a program is.
"""

from __future__ import annotations

import array
import contextvars
import enum
import functools
import hashlib
import inspect
import io
import logging
import operator
import os
import random
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from harness.runtime.fingerprint import Walk

Reader = Callable[[Any], tuple[Any, ...]]
_ALIASES = (type(Literal[1]), type(list[int]))
_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())
# Undecoded: it is compared at every state. The class has no other view of it that costs nothing.
_ENVIRONMENT: dict[Any, Any] = vars(os.environ)["_data"]
_BEGAN_WITH = dict(_ENVIRONMENT)
_EXCEPTION_APART = {"args", "__traceback__", "__dict__", "__cause__", "__context__"}


@functools.lru_cache(4096)
def digest_of(code: types.CodeType) -> str:
    """Return what ``code`` does as a short text, the same in every process."""
    constants = [digest_of(item) if isinstance(item, types.CodeType) else _plain(item) for item in code.co_consts]
    text = repr((code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _plain(constant: Any) -> str:
    """Return a constant as text; a set of texts has no order that holds in another process."""
    if isinstance(constant, frozenset):
        return f"frozenset {sorted(map(_plain, constant))}"
    return repr(constant)


def _of_buffer(kind: Any) -> Reader:
    return lambda buffer: ("closed",) if buffer.closed else (kind.getvalue(buffer), kind.tell(buffer))


def _of_view(view: memoryview) -> tuple[Any, ...]:
    try:
        return view.tobytes(), view.format, view.shape, view.readonly, view.obj
    except ValueError:
        return ("released",)


def _of_finalizer(finalizer: weakref.finalize[Any, Any]) -> tuple[Any, ...]:
    found = finalizer.peek()
    return ("dead",) if found is None else (*found, finalizer.atexit)


def _of_token(token: contextvars.Token[Any]) -> tuple[Any, ...]:
    old = token.old_value
    return token.var, "missing" if old is contextvars.Token.MISSING else old


def _of_module(module: types.ModuleType) -> tuple[Any, ...]:
    """Return the name of a module that was imported, and all of one that a program made."""
    name = module.__name__
    if sys.modules.get(name) is module:
        return (name,)
    return (name, *(item for part in vars(module).items() if not part[0].startswith("__") for item in part))


# Of these nothing else is read, although they have attributes.
BARE = (types.ModuleType, logging.Logger, logging.LogRecord, threading.Thread, inspect.Signature, *_ALIASES)
# By class, subclasses included; the first that fits.
READERS: tuple[tuple[Any, Reader], ...] = (
    (io.BytesIO, _of_buffer(io.BytesIO)),
    (io.StringIO, _of_buffer(io.StringIO)),
    (array.array, lambda value: (value.typecode, value.tobytes())),
    (memoryview, _of_view),
    (types.SimpleNamespace, lambda _: ()),
    (slice, lambda value: (value.start, value.stop, value.step)),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), lambda value: tuple(value.__reduce__()[1:])),
    (weakref.finalize, _of_finalizer),
    (contextvars.Token, _of_token),
    (re.Pattern, lambda value: (value.pattern, value.flags)),
    (inspect.Signature, lambda value: tuple(value.parameters)),
    (types.UnionType, lambda value: (value.__args__,)),
    (logging.LogRecord, lambda value: (value.name, value.levelno, value.msg, value.args)),
    (logging.Logger, lambda value: (value.name, value.level, value.disabled)),
    (types.CodeType, lambda value: (digest_of(value),)),
    (property, lambda value: (value.fget, value.fset, value.fdel)),
    (_LOCK, lambda value: (value.locked(),)),
    (_RLOCK, lambda value: (value._is_owned(),)),
    (threading.local, lambda value: (value.__dict__,)),
    (threading.Thread, lambda value: (value.name,)),
    (types.ModuleType, _of_module),
    (_ALIASES, lambda value: (value.__origin__, value.__args__)),
    (str, lambda value: (str.__str__(value),)),
    (int, lambda value: (int.__index__(value),)),
    (float, lambda value: (float.__float__(value),)),
    (bytes, lambda value: (bytes.__getitem__(value, slice(None)),)),
)


def reader_of(value: Any) -> Reader | None:
    """Return what reads ``value``, or None where nothing does: Python's own objects, and C that shows nothing."""
    if type(value) is object:
        return lambda _: ()  # nothing but an identity
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return lambda source: (hashlib.blake2b(repr(source.getstate()).encode(), digest_size=8).hexdigest(),)
    return next((reader for kind, reader in READERS if isinstance(value, kind)), None)


def put_error(walk: Walk, error: BaseException) -> None:
    """Append what C keeps of an exception besides its arguments: the name of a file, the value of a generator."""
    for name in _members_of_errors(type(error)):  # type: ignore[arg-type]  # mypy does not see that types hash
        try:
            item = getattr(error, name)
        except (AttributeError, TypeError):
            continue
        if item is not None and item is not False:
            walk.put(name)
            walk.ref(item)


@functools.cache
def _members_of_errors(kind: Any) -> tuple[str, ...]:
    names = {
        name
        for base in kind.__mro__
        if base.__module__ == "builtins" and issubclass(base, BaseException)
        for name, member in vars(base).items()
        if isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType))
    }
    return tuple(sorted(names - _EXCEPTION_APART))


def put_member(walk: Walk, value: enum.Enum) -> None:
    """Append a member of an enumeration, with what a program wrote on it."""
    walk.put(type(value).__name__, value.name)
    for name, item in sorted(vars(value).items()):
        if not name.startswith("_"):
            walk.put(name)
            walk.ref(item)


def put_process(walk: Walk) -> None:
    """Append what the process knows that a program may change: its folder and its environment."""
    try:
        walk.ref(os.getcwd())
    except FileNotFoundError:
        walk.put("no folder")
    if _ENVIRONMENT != _BEGAN_WITH:
        for name in sorted(_ENVIRONMENT.keys() | _BEGAN_WITH.keys()):
            if _ENVIRONMENT.get(name) != _BEGAN_WITH.get(name):
                walk.refs((name, _ENVIRONMENT.get(name)))
