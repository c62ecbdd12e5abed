"""The storage of an exported file: a small class that waits where the finding's storage waited.

Owns the text of that class; must not know the program.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.outcome import Event, Execution
from harness.report.export.layout import Tested
from harness.report.export.source import ExportError

MEMORY = "InMemoryCheckpointStorage"
# What a storage of ours is in a plain program. A job that was handed to a thread runs even when nobody waits for it.
_WAITS = {
    "memory": "as-is",
    "remote": "latency-before",
    "write-order": "latency-before",
    "file": "thread",
    "sqlite": "thread",
    "cosmos": "latency-before",
}
# As the framework's own file storage does, since it writes on a thread.
FINISHES = "finishes"
# Shapes that differ from a plainer one in what they cost, and seldom in what they break.
PLAINER = dict.fromkeys(("create-task", "gather", "latency-both"), "latency-before")
_SHAPES = {
    "as-is": (False, False),
    "latency-before": (True, False),
    "latency-after": (False, True),
    "latency-both": (True, True),
    "create-task": (True, False),
    "gather": (True, False),
    "shield": (True, False),
    "executor": (True, False),
    "thread": (True, False),
    FINISHES: (True, False),
}


@dataclass(frozen=True, slots=True)
class PlainStorage:
    """The storage of an exported file. own: the program defines it. gates: where it waits. reads: reads wait too."""

    name: str
    text: str = ""
    own: bool = False
    gates: tuple[str, ...] = ()
    reads: bool = False

    def keeping(self) -> PlainStorage:
        """Return a storage that also keeps a copy of what is passed to ``save``; raises ExportError."""
        if self.name != MEMORY:
            raise ExportError("a storage that waits and keeps copies has no plain form")
        return PlainStorage("Storage", _KEEPS)


def plain_storage(
    tested: Tested, execution: Execution, shape: str, faults: Mapping[str, str], *, reads: bool
) -> PlainStorage:
    """Return the storage of a finding with its saves in ``shape``.

    faults: by the name of the save. reads: let reads wait where they are jobs.
    Raises ExportError for a storage that is neither ours nor a class that the program's file knows.
    """
    name, journal = tested.setup["storage"], execution.journal
    factory = tested.storages.get(name)
    if factory is not None:
        made = type(factory(Path()))
        if tested.namespace.get(made.__name__) is not made or shape != "as-is":
            raise ExportError(f"the storage {name!r} has no plain form")
        return PlainStorage(made.__name__, own=True)
    if name not in _WAITS:
        raise ExportError(f"the storage {name!r} has no plain form")
    waits = _WAITS[name] if shape == "as-is" else shape
    before, after = _SHAPES.get(waits, (False, False))
    raising = {subject: option for subject, option in faults.items() if option.startswith("raises ")}
    ticks = tested.setup.get("clock", "increasing") == "increasing"
    if waits == "as-is" and not raising and ticks:
        return PlainStorage(MEMORY)
    doc, how = _HOW.get(waits, ("its save yields to the loop" if "yield" in waits else "in memory", "save"))
    lines = _save_lines(name, waits, raising, journal)
    if not ticks:
        doc = "two saves come within one tick of the clock"
        lines.insert(0, 'checkpoint.timestamp = "2026-01-01T00:00:00+00:00"')
    methods = _methods(how, lines)
    if raising:
        doc = "its connection breaks during one save"
        methods.insert(0, "saves = 0")
    reads = reads and name in ("sqlite", "cosmos") and waits == "thread"
    if reads:
        methods.append(_READ)
    if name == "write-order":
        doc = "the latest is what was written last, as by a serial number"
        methods.append(_LAST)
    body = "\n\n".join(textwrap.indent(method, "    ") for method in methods)
    text = f"class Storage({MEMORY}):  # {doc}\n{body}"
    gates = (*(["save"] if before else []), *(["ack"] if after else []), *(["read"] if reads else []))
    return PlainStorage("Storage", text=text, gates=gates, reads=reads)


_KEEPS = f"""class Storage({MEMORY}):  # keeps a copy of what is saved
    saved = {{}}

    async def save(self, checkpoint):
        self.saved[checkpoint.checkpoint_id] = copy.deepcopy(checkpoint.to_dict())
        return await super().save(checkpoint)"""
_READ = """async def get_latest(self, *, workflow_name):
    await gate("read")
    return await super().get_latest(workflow_name=workflow_name)"""
_LAST = """async def get_latest(self, *, workflow_name):
    checkpoints = await self.list_checkpoints(workflow_name=workflow_name)
    return checkpoints[-1] if checkpoints else None"""


def _save_lines(name: str, waits: str, raising: Mapping[str, str], journal: Sequence[Event]) -> list[str]:
    """Return the statements of one save, from its call to its end."""
    before, after = _SHAPES.get(waits, (False, False))
    nap = ["await asyncio.sleep(0)"]
    if waits.startswith("yields-"):
        nap = ["for _ in range(8):", "    await asyncio.sleep(0)"]
    lines = ["self.saves += 1"] if raising else []
    lines += nap if waits in ("yield-before", "yields-before") else []
    lines += ['await gate("save")'] if before else []
    lines += _raises(raising, journal, when="before")
    lines += ["self._checkpoints.pop(checkpoint.checkpoint_id, None)"] if name == "write-order" else []
    tail = nap if waits in ("yield-after", "yields-after") else []
    tail += ['await gate("ack")'] if after else []
    tail += _raises(raising, journal, when="after")
    if not tail:
        return [*lines, "return await super().save(checkpoint)"]
    return [*lines, "result = await super().save(checkpoint)", *tail, "return result"]


# How a save waits: what the class says of it, and who runs its body.
_HOW = {
    "latency-before": ("its save waits for the network before it writes", "save"),
    "latency-after": ("its save waits for the answer after it wrote", "save"),
    "latency-both": ("its save waits before and after it writes", "save"),
    "create-task": ("its save is a task of its own", "await asyncio.create_task(self.write(checkpoint))"),
    "gather": (
        "its save gathers two operations",
        "(await asyncio.gather(self.write(checkpoint), asyncio.sleep(0)))[0]",
    ),
    "shield": ("its save is shielded", "await asyncio.shield(asyncio.create_task(self.write(checkpoint)))"),
    FINISHES: ("a save that is cancelled still finishes its write", FINISHES),
    "thread": (
        "a save is no task of the run, as on a thread",
        "await asyncio.shield(asyncio.Task(self.write(checkpoint)))",
    ),
}
_HOW["executor"] = _HOW["thread"]
_FINISHES = """write = asyncio.Task(self.write(checkpoint))
try:
    return await asyncio.shield(write)
except asyncio.CancelledError:
    await write
    raise"""


def _methods(how: str, lines: Sequence[str]) -> list[str]:
    if how == FINISHES:
        save = "async def save(self, checkpoint):\n" + textwrap.indent(_FINISHES, "    ")
        return [save, *_methods("", lines)[1:]]
    if how == "save":
        return ["async def save(self, checkpoint):\n" + "\n".join(f"    {line}" for line in lines)]
    return [
        f"async def save(self, checkpoint):\n    return {how}",
        "async def write(self, checkpoint):\n" + "\n".join(f"    {line}" for line in lines),
    ]


def _raises(raising: Mapping[str, str], journal: Sequence[Event], *, when: str) -> list[str]:
    saves = [event.subject for event in journal if event.kind == "save.called"]
    lines = []
    for subject, option in raising.items():
        if option == f"raises {when} commit" and subject in saves:
            lines += [f"if self.saves == {saves.index(subject) + 1}:", '    raise RuntimeError("connection lost")']
    return lines
