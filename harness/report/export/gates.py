"""Gates: the order of a failing execution, as names that a plain program waits at.

Owns the order and the two functions that keep to it; must not know which op becomes which gate.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which gates open. numbered: a gate's name carries how often it was reached, as in ``save 2``."""

    names: tuple[str, ...]
    numbered: bool = False

    def with_others(self, names: Iterable[str]) -> Order:
        """Return this order with the gates that it leaves open behind it, so that every gate has a place."""
        if self.numbered:
            return self
        return Order((*self.names, *(name for name in dict.fromkeys(names) if name not in self.names)))


def order_of(parked: Sequence[tuple[str, str]], delivered: Sequence[str]) -> Order:
    """Return the order in which gates open.

    parked: the op's name and its gate's, in the order in which ops began to wait, "" for one that has no gate.
    delivered: the names of ops in the order in which they arrived, up to the violation. What was reached and
    did not arrive comes last.
    """
    counts: dict[str, int] = defaultdict(int)
    keys: dict[str, deque[tuple[str, int]]] = defaultdict(deque)
    everything: list[tuple[str, int]] = []
    for op, gate in parked:
        if gate:
            counts[gate] += 1
            keys[op].append((gate, counts[gate]))
            everything.append((gate, counts[gate]))
    opened: list[tuple[str, int]] = []
    for op in delivered:
        if op == CANCEL:
            opened.append((CANCEL, 1))
        elif keys[op]:
            opened.append(keys[op].popleft())
    opened += [key for key in everything if key not in opened]
    names = list(dict.fromkeys(name for name, _ in opened))
    # Names are enough when each gate's turns come in a row and in the order in which they were reached.
    if opened == [(name, number) for name in names for number in range(1, counts.get(name, 1) + 1)]:
        return Order(tuple(names))
    return Order(tuple(f"{name} {number}" for name, number in opened), numbered=True)


def gate_functions(order: Order, *, plain: bool) -> list[str]:
    """Return the source of what keeps to the order. plain: every place waits for its event itself."""
    count = '    reached.append(name)\n    name = f"{name} {reached.count(name)}"\n' if order.numbered else ""
    gate = f"async def gate(name):\n{count}    if name in gates:\n        await gates[name].wait()" if not plain else ""
    finish = '''async def finish(run):
    """Await ``run``; whenever nothing else can happen, open the next gate."""
    task = asyncio.ensure_future(run)
    while not task.done():
        for _ in range(1000):  # loop iterations, not a time: all that is ready runs, on a slow machine too
            await asyncio.sleep(0)
        if not task.done() and (closed := [gate for gate in gates.values() if not gate.is_set()]):
            closed[0].set()
    return await task'''
    return [gate, finish] if gate else [finish]
