"""What comes from outside, as ops: callbacks of foreign threads, signals, and files that are ready.

Owns the collecting and the parking of each; must not know which arrival goes first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harness.model.errors import UncontrolledError
from harness.runtime import external
from harness.runtime.ops import Op
from harness.runtime.waits import describe_waits

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# How long, in virtual seconds, an answer from outside that is there may be held, and how far ahead a deadline may come
# to a busy loop while real I/O is allowed. Every library that talks to a thread or a peer assumes that a
# second is enough; a machine that stops for longer breaks all of them, which is no finding.
SLOW_ANSWER_S = 0.25


def collect_now(loop: ControlledLoop, *, wait_s: float = 0) -> bool:
    """Collect what is there without waiting for more than ``wait_s`` real seconds."""
    selector: Any = loop._selector
    return collect_foreign(loop, selector.select(wait_s) if selector.watching else None)


def collect_foreign(loop: ControlledLoop, events: Any = None) -> bool:
    """Turn callbacks of foreign threads and ``events`` of files into parked ops; return whether any came.

    Files go by number: the order in which the kernel names them is not the same every time.
    """
    if loop.followed_at is not None:
        external.follow_real_time(loop)
    before = len(loop.parked)
    if events:
        collect_files(loop, events)
    while loop.foreign:
        kind, source, handle = loop.foreign.popleft()
        park_handle(loop, handle, name=kind, source=source)
    if loop.uncontrolled is not None:
        error, loop.uncontrolled = loop.uncontrolled, None
        raise UncontrolledError(f"{error}\n{describe_waits(loop)}") from None
    return len(loop.parked) > before


def collect_files(loop: ControlledLoop, events: Any) -> None:
    """Park the callbacks of files that are ready, each once; read the loop's own pipe at once."""
    ready: Any = loop._ready  # type: ignore[attr-defined]
    pipe = loop._ssock.fileno()
    own = [event for event in events if event[0].fd == pipe]
    if own:
        loop._read_from_self()  # type: ignore[attr-defined]
    waiting = {op.target for op in loop.parked if op.kind == "arrival"}
    for event in sorted((event for event in events if event not in own), key=lambda event: event[0].fd):
        mark = len(ready)
        loop._process_events([event])  # type: ignore[attr-defined]
        for handle in [ready.pop() for _ in range(len(ready) - mark)][::-1]:
            if handle not in waiting:
                park_handle(loop, handle, name="io", fd=event[0].fd)


def park_handle(loop: ControlledLoop, handle: asyncio.Handle, *, name: str, fd: int = -1, source: int = 0) -> None:
    """Park a callback from outside; delivering it puts it in the ready queue.

    source: the thread that it comes from; what it asks for arrives in the order in which it did.
    A file that is no longer ready when its turn comes is left alone: somebody else has read it.
    """
    turn = loop.turn

    def deliver(op: Op) -> None:
        if fd < 0 or turn == loop.turn or still_ready(loop, fd):
            loop._ready.append(op.target)  # type: ignore[attr-defined]

    callback: Any = handle._callback  # type: ignore[attr-defined]
    callback = getattr(callback, "func", callback)  # a partial stands for its function
    label = getattr(callback, "__qualname__", type(callback).__name__).replace(".<locals>", "")
    op = Op(loop, f"{name}:{label}", kind="arrival", deliver=deliver, target=handle)
    op.until = loop.now() + SLOW_ANSWER_S
    op.source = source
    before = next((other for other in reversed(loop.parked) if source and other.source == source), None)
    loop.park_op(op)
    if before is not None:
        op.rank = max(op.rank, before.rank)


def still_ready(loop: ControlledLoop, fd: int) -> bool:
    """Return whether file ``fd`` is ready now."""
    return any(key.fd == fd for key, _ in loop._selector.select(0))
