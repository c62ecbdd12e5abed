"""What a checkpoint holds, as values that a journal can keep and compare.

Owns the summary of a checkpoint; must not know oracles.
"""

from __future__ import annotations

from typing import Any


def summary(checkpoint: Any) -> dict[str, Any]:
    """Return what oracles judge of a checkpoint: its place in the chain, its steps and its open requests."""
    return {
        "checkpoint": str(checkpoint.checkpoint_id),
        "previous": checkpoint.previous_checkpoint_id,
        "timestamp": checkpoint.timestamp,
        "steps": sorted(checkpoint.state.get("_step_cache", ())),
        "requests": sorted(checkpoint.pending_request_info_events),
        "workflow": checkpoint.workflow_name,
    }
