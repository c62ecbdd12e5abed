"""LangGraph in an exported file: how its graphs are run, and a checkpointer.

Owns the text of the calls; must not know the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.adapters.plain_runs import Assertion, Imports
from harness.adapters.plain_statements import Call
from harness.model.outcome import Execution, Violation
from harness.report.export.source import ExportError

_BEGUN = "\n    begun = 0\n"
_COUNT = "\n        self.begun += 1"
_SAVER = """class Saver(InMemorySaver):  # its puts wait for the network first{begun}
    async def aput(self, config, checkpoint, metadata, new_versions):{count}
        await gate("save")
        return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config, writes, task_id, task_path=""):{count}
        await gate("save")
        await super().aput_writes(config, writes, task_id, task_path)"""


class GraphCalls:
    """How LangGraph is called."""

    name = "langgraph"
    imports: Imports = (("langgraph.checkpoint.memory", "InMemorySaver", "InMemorySaver"),)

    def helpers(self, borrowed: Sequence[str], calls: Sequence[Call]) -> tuple[str, ...]:
        """Return nothing: a graph is awaited as it is."""
        if borrowed:
            raise ExportError(f"{borrowed[0]!r} of the harness has no plain form")
        return ()

    def storage(self, name: str, *, gated: bool, counts: bool) -> tuple[str, str]:
        """Return a checkpointer in memory, whose puts wait where those of the finding did."""
        if name not in ("memory", "remote"):
            raise ExportError(f"the storage {name!r} works on a thread, which no gate can hold")
        text = _SAVER.format(begun=_BEGUN if counts else "", count=_COUNT if counts else "")
        return ("Saver()", text) if gated else ("InMemorySaver()", "")

    def setup(self) -> tuple[str, ...]:
        """Return the thread that all runs are of."""
        return ('config = {"configurable": {"thread_id": "1"}}',)

    def call(self, call: Call) -> tuple[tuple[str, ...], str]:
        """Return a run of a new graph, from its message or from the latest checkpoint."""
        if set(call.named) - {"durability"}:
            raise ExportError(f"a run with {', '.join(sorted(set(call.named) - {'durability'}))} has no plain form")
        first = call if call.first is None else call.first
        while first.first is not None:
            first = first.first
        graph, message = first.arguments
        durability = first.named.get("durability", '"async"')
        before: tuple[str, ...] = ()
        if call.first is not None:
            before = (
                "latest = await storage.aget_tuple(config)",
                f"start = {message} if latest is None else None  # none: from the checkpoint",
            )
            message = "start"
        before += (f"compiled = {graph}().compile(checkpointer=storage)",)
        return before, f"compiled.ainvoke({message}, config, durability={durability})"

    def assertion(self, violation: Violation, execution: Execution) -> Assertion | None:
        """Return None: there is none but the usual ones."""
        return None
