"""snapshot_immutable: what was saved stays as it was.

Owns this one promise; must not know how a storage copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import saves_checkpoint

NEEDS = ("contents",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: a stored checkpoint equals what was passed to ``save``, for ever.

    Compared are digests of the contents when ``save`` was called and whenever the checkpoint is read.
    """
    saved: dict[str, Event] = {}
    for event in journal:
        if saves_checkpoint(event):
            saved[event.data["checkpoint"]] = event
            continue
        for checkpoint, digest in _read(event):
            before = saved.get(checkpoint)
            if before is not None and before.data.get("digest") != digest:
                return Violation(
                    "snapshot_immutable",
                    f"the checkpoint of {before.subject} (run {before.run}, turn {before.turn}) is not what was passed "
                    f"to save (digest {before.data.get('digest')}, now {digest})",
                    event.turn,
                )
    return None


def _read(event: Event) -> Iterator[tuple[str, str]]:
    """Yield the id and the digest of every checkpoint that an event shows as it is stored."""
    if event.kind in ("storage.loaded", "storage.latest") and "digest" in event.data:
        yield event.data["checkpoint"], event.data["digest"]
    elif event.kind == "storage.state":
        for found in event.data["checkpoints"]:
            if "digest" in found:
                yield found["checkpoint"], found["digest"]


PLUGIN = judge
