"""Gates: the order of a failing execution, as names that a plain program waits at.

Owns the order and the functions that keep to it; must not know which op becomes which gate.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

CANCEL = "cancel"
# Waits until nothing else can happen; the last one of all, and one that a program has in its midst.
REST, QUIET = "rest", "quiet"
# Marks an entry of what was delivered that is no op, but something that happened.
EVENT = "="


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which gates open.

    numbered: a gate's name carries how often it was reached, as in ``save 2``. early: gates that open while others
    still run: that many iterations of the loop after the gate before them.
    """

    names: tuple[str, ...]
    numbered: bool = False
    early: Mapping[str, int] = field(default_factory=dict)

    def with_others(self, names: Iterable[str]) -> Order:
        """Return this order with the gates that it leaves open behind it, so that every gate has a place."""
        if self.numbered:
            return replace(self, names=(*self.names, *(f"{name} 1" for name in names if name == REST)))
        others = tuple(name for name in dict.fromkeys(names) if name not in self.names)
        return replace(self, names=(*self.names, *others))


def order_of(parked: Sequence[tuple[str, str]], delivered: Sequence[str]) -> Order:
    """Return the order in which gates open.

    parked: the op's name and its gate's, in the order in which ops began to wait, "" for one that has no gate.
    delivered: the names of ops in the order in which they arrived, up to the violation; EVENT before the gate of what
    happened without any op. What was reached and did not arrive comes last.
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
        if op.startswith(EVENT):
            counts[op.removeprefix(EVENT)] += 1
            opened.append((op.removeprefix(EVENT), counts[op.removeprefix(EVENT)]))
        elif keys[op]:
            opened.append(keys[op].popleft())
    opened += [key for key in everything if key not in opened]
    names = list(dict.fromkeys(name for name, _ in opened))
    # Names are enough when each gate's turns come in a row and in the order in which they were reached.
    if opened == [(name, number) for name in names for number in range(1, counts.get(name, 1) + 1)]:
        return Order(tuple(names))
    return Order(tuple(f"{name} {number}" for name, number in opened), numbered=True)


def gate_functions(order: Order, *, plain: bool, ends: bool) -> list[str]:
    """Return the source of what keeps to the order.

    plain: every place waits for its event itself. ends: that it ends is what is asserted.
    """
    count = '    reached.append(name)\n    name = f"{name} {reached.count(name)}"\n' if order.numbered else ""
    gate = f"async def gate(name):\n{count}    if name in gates:\n        await gates[name].wait()"
    opening = """        if not task.done() and (closed := [gate for gate in gates.values() if not gate.is_set()]):
            closed[0].set()"""
    if ends:
        opening = """        closed = [gate for gate in gates.values() if not gate.is_set()]
        assert task.done() or closed, "it waits for ever: nothing else can happen any more"
        if closed and not task.done():
            closed[0].set()"""
    rest = "1000):  # loop iterations, not a time: all that is ready runs, on a slow machine too"
    name = ""
    if order.early:
        name = '        name = next((name for name in gates if not gates[name].is_set()), "")\n'
        rest = "early.get(name, 1000)):  # iterations: all that is ready runs, on a slow machine too"
    finish = f'''async def finish(run):
    """Await ``run``; whenever nothing else can happen, open the next gate."""
    task = asyncio.ensure_future(run)
    while not task.done():
{name}        for _ in range({rest}
            await asyncio.sleep(0)
{opening}
    return await task'''
    return [finish] if plain else [gate, finish]
