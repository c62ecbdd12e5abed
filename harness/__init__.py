"""Deterministic concurrency testing of asyncio programs, made for durable workflows.

Owns the public names, imported on first use; must not import a third party.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.adapters.agent_framework.check import check_storage
    from harness.adapters.explaining import explain
    from harness.adapters.hypothesis import workflows
    from harness.model.errors import (
        DeadlockError,
        DivergenceError,
        HarnessError,
        TokenError,
        UncontrolledError,
        UsageError,
    )
    from harness.model.explanation import Explanation
    from harness.model.rung import Rung
    from harness.model.scenario import Scenario, scenario
    from harness.runtime.access import access, declared
    from harness.runtime.attempt import attempt
    from harness.runtime.execution import execute
    from harness.runtime.loop import ControlledLoop, LoopSettings
    from harness.runtime.points import effect, fault, point, shape
    from harness.runtime.policy import HarnessEventLoopPolicy, new_event_loop

__version__ = "0.1.0"

_HOMES = {
    "ControlledLoop": "harness.runtime.loop",
    "DeadlockError": "harness.model.errors",
    "DivergenceError": "harness.model.errors",
    "Explanation": "harness.model.explanation",
    "HarnessError": "harness.model.errors",
    "HarnessEventLoopPolicy": "harness.runtime.policy",
    "LoopSettings": "harness.runtime.loop",
    "Rung": "harness.model.rung",
    "TokenError": "harness.model.errors",
    "UncontrolledError": "harness.model.errors",
    "UsageError": "harness.model.errors",
    "Scenario": "harness.model.scenario",
    "access": "harness.runtime.access",
    "attempt": "harness.runtime.attempt",
    "check_storage": "harness.adapters.agent_framework.check",
    "declared": "harness.runtime.access",
    "effect": "harness.runtime.points",
    "execute": "harness.runtime.execution",
    "explain": "harness.adapters.explaining",
    "fault": "harness.runtime.points",
    "new_event_loop": "harness.runtime.policy",
    "point": "harness.runtime.points",
    "scenario": "harness.model.scenario",
    "workflows": "harness.adapters.hypothesis",
    "shape": "harness.runtime.points",
}

__all__ = [
    "ControlledLoop",
    "DeadlockError",
    "DivergenceError",
    "Explanation",
    "HarnessError",
    "HarnessEventLoopPolicy",
    "LoopSettings",
    "Rung",
    "Scenario",
    "TokenError",
    "UncontrolledError",
    "UsageError",
    "access",
    "attempt",
    "check_storage",
    "declared",
    "effect",
    "execute",
    "explain",
    "fault",
    "new_event_loop",
    "point",
    "scenario",
    "shape",
    "workflows",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
