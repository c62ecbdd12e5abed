"""A mould of a fresh loop: what asyncio and we put into one, so that the next is made by copying.

Owns the copying of a loop's fields; must not know what they are for.

Building a loop is a third of what an execution of a small program costs, and almost all of it is the same each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Made anew for each loop; everything else that a fresh loop holds is a value that nobody changes.
_CONTAINERS = (dict, list, set, deque)
_VALUES = (bool, float, int, str, tuple, FunctionType, type(None))


class OnDemand(Generic[T]):
    """A field that is made when it is first asked for; what is assigned to it comes before.

    For what few executions use.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        """make: returns the value for a loop."""
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, loop: Any, owner: type) -> T:
        if loop is None:
            return self  # type: ignore[return-value]  # read from the class, by Mould
        value: T = self._make(loop)
        vars(loop)[self._name] = value
        return value


def empty(make: Callable[[], T]) -> OnDemand[T]:
    """Return a field that is empty at first."""
    return OnDemand(lambda _: make())


class Mould:
    """The fields of one loop that was just made."""

    def __init__(self, loop: Any) -> None:
        fields = vars(loop)
        on_demand = [name for name in fields if isinstance(vars(type(loop)).get(name), OnDemand)]
        self._containers = [(name, type(value)) for name, value in fields.items() if type(value) in _CONTAINERS]
        made = {*on_demand, *(name for name, _ in self._containers)}
        # With a place for each container, since copying a dictionary is cheap and growing one is not.
        self._values = {
            name: None if name in made else value for name, value in fields.items() if name not in on_demand
        }
        odd = [name for name, value in self._values.items() if not (isinstance(value, _VALUES) or _is_frozen(value))]
        # invariant: true if no field of a copy is shared with another loop by mistake
        self.usable = not odd and not any(fields[name] for name, _ in self._containers)

    def fields(self) -> dict[str, Any]:
        """Return the fields of one more loop."""
        fields = self._values.copy()
        for name, make in self._containers:
            fields[name] = make()
        return fields


def _is_frozen(value: Any) -> bool:
    parameters: Any = getattr(value, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen is True
