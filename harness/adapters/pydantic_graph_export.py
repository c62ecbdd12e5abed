"""pydantic-graph in an exported file: how its graphs are run, and what is asserted of its snapshots.

Owns the text of the calls; must not know the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.adapters.plain_runs import Assertion, Imports
from harness.adapters.plain_statements import Call
from harness.model.outcome import Execution, Violation
from harness.report.export.source import ExportError

_GO = """async def go(opened, steps):
    async with opened as running:
        for _ in range(steps):
            if isinstance(await running.next(), End):
                break"""
_KEEPS = """class Storage(FullStatePersistence):  # keeps what each snapshot was taken of
    saved = []

    async def snapshot_node(self, state, next_node):
        await super().snapshot_node(state, next_node)
        self.saved.append(repr(state))

    async def snapshot_end(self, state, end):
        await super().snapshot_end(state, end)
        self.saved.append(repr(state))"""


class GraphCalls:
    """How pydantic-graph is called."""

    name = "pydantic-graph"
    imports: Imports = (
        ("pydantic_graph", "End", "End"),
        ("pydantic_graph.persistence.in_mem", "FullStatePersistence", "FullStatePersistence"),
    )

    def helpers(self, borrowed: Sequence[str], calls: Sequence[Call]) -> tuple[str, ...]:
        """Return what takes some steps of a graph."""
        if borrowed:
            raise ExportError(f"{borrowed[0]!r} of the harness has no plain form")
        return (_GO,)

    def storage(self, name: str, *, gated: bool, counts: bool) -> tuple[str, str]:
        """Return the framework's own persistence, which never waits."""
        return "FullStatePersistence()", ""

    def setup(self) -> tuple[str, ...]:
        """Return nothing: a graph needs no more than its persistence."""
        return ()

    def call(self, call: Call) -> tuple[tuple[str, ...], str]:
        """Return the first steps of a graph, or those after its last snapshot."""
        if call.first is not None:
            return (), f"go({call.first.arguments[0]}.iter_from_persistence(storage), {call.named['steps']})"
        graph, start = call.arguments
        return (), f"go({graph}.iter({start}, state={call.named['state']}, persistence=storage), {call.named['steps']})"

    def assertion(self, violation: Violation, execution: Execution) -> Assertion | None:
        """Return what is asserted of snapshots: that they are what they were taken of."""
        if violation.oracle != "snapshot_immutable":
            return None
        return Assertion(
            "test_a_stored_snapshot_stays_as_it_was",
            ("states = [repr(item.state) for item in storage.history]",),
            holds="states == storage.saved",
            message='f"a stored snapshot is not what was taken: {states}, not {storage.saved}"',
            bug="a stored snapshot is not what was taken",
            storage=_KEEPS,
        )
