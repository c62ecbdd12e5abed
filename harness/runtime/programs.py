"""Functions, classes and modules of the program in a fingerprint, with the globals that its code names.

Owns what counts as the program's own; must not know how other objects are read.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from typing import TYPE_CHECKING, Any

from harness.runtime import hidden

if TYPE_CHECKING:
    from harness.runtime.fingerprint import Walk

_WHOLE = frozenset({"globals", "vars", "eval", "exec", "modules"})
_PLAIN = frozenset({bool, int, float, str, bytes, type(None)})
_CODE = (types.FunctionType, property, staticmethod, classmethod)
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def put_class(walk: Walk, value: Any) -> None:
    """Append a class: of the program, with the data and the functions in it; of a library, by name."""
    walk.put(value.__module__, value.__qualname__)
    if not is_program(value.__module__):
        return
    for name, item in sorted(vars(value).items()):
        if not name.startswith("__") or isinstance(item, _CODE):
            walk.put(name)
            walk.ref(item)
    walk.refs(base for base in (type(value), *value.__bases__) if is_program(base.__module__))


def put_cell(walk: Walk, value: Any) -> None:
    """Append a closure's variable."""
    try:
        walk.ref(value.cell_contents)
    except ValueError:
        walk.put("empty")


def put_function(walk: Walk, value: Any) -> None:
    """Append a function: its code, its closure and defaults, and the globals that a program's code names."""
    code = value.__code__
    walk.put(value.__module__, code.co_qualname, code.co_firstlineno, hidden.digest_of(code))
    if value.__closure__:
        walk.refs(value.__closure__)
    if value.__defaults__ or value.__kwdefaults__ or value.__dict__:
        walk.refs((value.__defaults__, value.__kwdefaults__, value.__dict__))
    if is_program(value.__module__):
        _put_globals(walk, value.__globals__, _names_in(code))


def _put_globals(walk: Walk, space: dict[str, Any], names: tuple[str, ...]) -> None:
    """Append what ``names`` stand for in a module's ``space``; of a module that they name, what they may read of it.

    Code that asks for all globals is taken to read each. Of installed modules only plain values are read: what else
    they hold is taken as constant.
    """
    if not _WHOLE.isdisjoint(names):
        names = tuple(sorted({*names, *(name for name in space if not name.startswith("__"))}))
    for name in names:
        # a name that is not here may be a module that the function imports
        item = space[name] if name in space else sys.modules.get(name)
        if not isinstance(item, types.ModuleType):
            if name in space:
                walk.put(name)
                walk.ref(item)
            continue
        own, inner = is_program(item.__name__), vars(item)
        for part in names:
            readable = part in inner and (own or type(inner[part]) in _PLAIN)
            if readable and not isinstance(inner[part], types.ModuleType):
                walk.put(name, part)
                walk.ref(inner[part])


@functools.cache
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(_names_in(constant))
    return tuple(sorted(names))


@functools.cache
def is_program(module: str | None) -> bool:
    """Return whether ``module`` belongs to the program: it is neither installed nor ours."""
    if module is None or module == "harness" or module.startswith("harness."):
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not str(file).startswith(_INSTALLED)
