"""request_durable: what a human was asked is not forgotten.

Owns this one promise; must not know how a run pauses.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.outcome import Event, Violation
from harness.model.runs import family, runs_of

NEEDS = ("storage",)


def judge(journal: Sequence[Event]) -> Violation | None:
    """Judge: a request that the caller saw is pending in the latest checkpoint or withdrawn.

    Judged whenever the latest checkpoint is asked for after the run that asked has ended and before any run
    continues it, and at the end of the program. A request that was answered or withdrawn is settled. Of two
    instances that resumed the same at once only one can have the latest checkpoint: they are left out.
    """
    runs = runs_of(journal)
    open_requests: dict[tuple[int, str], Event] = {}
    for index, event in enumerate(journal):
        if event.kind == "run.request":
            open_requests[event.run, event.data["request"]] = event
        elif event.kind in ("run.answered", "run.withdrawn"):
            open_requests.pop((event.run, event.data["request"]), None)
        elif event.kind == "run.started":
            # whoever continues a run takes its requests over: it answers them or asks again
            related = family(runs, event.run) - {event.run}
            open_requests = {key: seen for key, seen in open_requests.items() if key[0] not in related}
        elif event.kind in ("storage.latest", "storage.state"):
            for (run, request), seen in open_requests.items():
                ended = runs[run].ended if run in runs else None
                if ended is None or ended > index or runs[run].data.get("twin"):
                    continue
                pending = _pending(event, runs[run].name)
                if pending is not None and request not in pending:
                    return Violation(
                        "request_durable",
                        f"the caller of run {run} saw the request {request!r} (turn {seen.turn}), and the latest "
                        f"checkpoint does not hold it, but {', '.join(pending) or 'none'}",
                        event.turn,
                    )
    return None


def _pending(event: Event, workflow: str) -> list[str] | None:
    """Return the requests of the latest checkpoint of ``workflow``, or None when the event is of another one."""
    if event.kind == "storage.latest":
        return list(event.data["requests"]) if event.data.get("workflow") == workflow else None
    if workflow not in event.data["latest"]:
        return None
    latest = event.data["latest"][workflow]
    return [
        request for found in event.data["checkpoints"] if found["checkpoint"] == latest for request in found["requests"]
    ]


PLUGIN = judge
