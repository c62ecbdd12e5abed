"""Registries of plug-ins: one package, one module each, found by name.

Owns discovery and the error for a name that does not exist; must not know what a plug-in does.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable

from harness.model.errors import MissingPackageError, UsageError


def plugin_names(package: str) -> tuple[str, ...]:
    """Return the names of the modules in ``package``, sorted, with dashes for underscores.

    Nothing is imported but the package itself: listing stays cheap.
    """
    module = importlib.import_module(package)
    found = (info.name for info in pkgutil.iter_modules(module.__path__))
    return tuple(sorted(name.replace("_", "-") for name in found if not name.startswith("_")))


def unknown(kind: str, *, name: str, known: Iterable[str]) -> UsageError:
    """Return the one-line error for a name that does not exist, with the nearest names."""
    names = tuple(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UsageError(f"unknown {kind} {name!r}{hint} (known: {', '.join(names) or 'none'})")


def load_plugin(package: str, *, name: str, kind: str) -> object:
    """Return the ``PLUGIN`` attribute of the module called ``name`` in ``package``.

    Raises UsageError, which lists the nearest names, when there is none, and MissingPackageError when the
    module imports what is not there.
    """
    names = plugin_names(package)
    if name not in names:
        raise unknown(kind, name=name, known=names)
    try:
        module = importlib.import_module(f"{package}.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if missing.partition(".")[0] == __name__.partition(".")[0]:
            raise  # a mistake of ours
        needed = missing.replace("_", "-")
        raise MissingPackageError(f"the {kind} {name!r} needs {needed!r}, which is not installed") from error
    except ImportError as error:
        raise MissingPackageError(f"the {kind} {name!r} does not fit what is installed: {error}") from error
    plugin: object = module.PLUGIN
    return plugin
