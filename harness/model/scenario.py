"""Scenarios: a durable workflow with a name, an affected range and the storages that it runs on.

Owns the description and the decorator that registers it; must not know how it is run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.model.errors import UsageError
from harness.model.rung import Rung

# A storage is named, or made by a function of a directory that exists and is empty.
StorageFactory = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Executable documentation of one bug or one promise.

    program: an async function of one ``durable``. storages: names of registered storages, or name to
    factory. package, affected: a distribution and a version range such as ``>=1.22,<1.24`` in which the
    promise is known to break. breaks_on: the storages, as they are, on which it breaks there; None for all.
    oracles: names of those that judge, or ``("all",)``. rung: the highest assumption. shapes: whether the search also
    chooses how a save waits. faults: what it may let happen to a run, such as ``cancel`` and ``crash``.
    clock: the clock model. without: oracles that do not judge here, each with the reason, which reports print.
    budget: executions per storage. requires: what it imports besides ``package``, as requirements; where one is not
    installed, it is skipped. variants: names of scenarios beside it that a proof of it covers too, one per file.
    """

    name: str
    program: Callable[[Any], Coroutine[Any, Any, Any]]
    storages: Mapping[str, StorageFactory | None]
    adapter: str = "agent-framework"
    package: str = "agent-framework-core"
    affected: str = ""
    breaks_on: tuple[str, ...] | None = None
    oracles: tuple[str, ...] = ("completed-steps-restored",)
    reference: str = ""
    rung: Rung = Rung.LATENCY
    shapes: bool = True
    faults: tuple[str, ...] = ()
    clock: str = "increasing"
    without: Mapping[str, str] = field(default_factory=dict)
    budget: int = 500
    requires: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The first line of the program's docstring."""
        return (inspect.getdoc(self.program) or "").partition("\n")[0]


def scenario(
    name: str,
    *,
    storages: Sequence[str] | Mapping[str, StorageFactory],
    **options: Any,
) -> Callable[[Callable[[Any], Coroutine[Any, Any, Any]]], Scenario]:
    """Make a Scenario of an async function of one ``durable``; options are the fields of Scenario.

    Raises UsageError for a function that is not async, and for an unknown option.
    """
    known = set(Scenario.__dataclass_fields__) - {"name", "program", "storages"}
    if wrong := sorted(set(options) - known):
        raise UsageError(f"scenario {name!r}: unknown option {wrong[0]!r} (known: {', '.join(sorted(known))})")
    for oracle, reason in dict(options.get("without", {})).items():
        if not str(reason).strip():
            raise UsageError(f"scenario {name!r}: oracle {oracle!r} is switched off without a reason")
    factories: dict[str, StorageFactory | None] = (
        dict(storages) if isinstance(storages, Mapping) else dict.fromkeys(storages)
    )

    def decorate(program: Callable[[Any], Coroutine[Any, Any, Any]]) -> Scenario:
        if not inspect.iscoroutinefunction(program):
            raise UsageError(f"scenario {name!r}: {getattr(program, '__name__', program)!r} is not an async function")
        return Scenario(name=name, program=program, storages=factories, **options)

    return decorate
