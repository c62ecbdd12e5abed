"""State fingerprints: what a loop that waits for a choice can still depend on, as one digest.

Owns the canonical walk over tasks, coroutines, queues and what they reach; must not know searches.

Coroutines cannot be copied, but they can be read: ``gc.get_referents`` yields their locals and their
evaluation stack. Objects are numbered by first visit, sets have no order, futures are their state, values of
the virtual clock are their rank, seeded ids are numbered by first occurrence. Two loops with the same digest
go on alike, as far as the walk can see; ``Walk.unseen`` names what it cannot.
"""

from __future__ import annotations

import asyncio
import collections
import enum
import gc
import hashlib
import random
import types
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from harness.model.rung import Rung
from harness.runtime import objects
from harness.runtime.arrivals import alive
from harness.runtime.identity import path_of
from harness.runtime.lanes import turn_task
from harness.runtime.texts import Texts
from harness.runtime.waits import live_tasks

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# Deadlines that are closer than this to each other are ordered as in the execution that was explored.
TIME_GRID_S = 1e-4
_INLINE = (int, float, complex, bytes, str, type(None), type(...), type(NotImplemented), range)
_STEP = "TaskStepMethWrapper"

Handler = Callable[["Walk", Any], None]


class Walk:
    """One walk; ``out`` is the state as a list of plain values.

    unseen: names of types whose state the walk cannot read; it grows.
    """

    def __init__(self, loop: ControlledLoop, unseen: set[str]) -> None:
        self.loop = loop
        self.out: list[Any] = []
        self.unseen = unseen
        self._numbers: dict[int, int] = {}
        self._queue: list[Any] = []  # keeps what was met alive, so that no address is used twice
        self._texts = Texts()
        self.members: set[int] = set()  # numbers of the tasks that are in sets, or keys of dicts

    def put(self, *values: Any) -> None:
        """Append plain values."""
        self.out.extend(values)

    def ref(self, value: Any) -> None:
        """Append ``value`` itself when it is plain, and its number otherwise; it is then visited once."""
        if isinstance(value, _INLINE) and type(value) in _INLINE:
            self._texts.put(self.out, value)
            return
        if isinstance(value, bool):
            self.out.append(value)
            return
        # Addresses serve within one walk, over objects that it keeps alive; none of them gets into the digest.
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._queue)
            self._queue.append(value)
        self.out.append(("#", number))

    def refs(self, values: Iterable[Any]) -> None:
        """Append several values and where they end."""
        for value in values:
            self.ref(value)
        self.out.append(";")

    def digest(self) -> bytes:
        """Visit everything that was mentioned and return the digest."""
        done = 0
        while done < len(self._queue):
            value = self._queue[done]
            done += 1
            handler = _HANDLERS.get(type(value)) or _find_handler(value)
            handler(self, value)
        self._texts.rank(self.out)
        return hashlib.blake2b(repr(self.out).encode(errors="surrogatepass"), digest_size=16).digest()


def fingerprint(loop: ControlledLoop, extra: Any, *, unseen: set[str]) -> tuple[bytes, frozenset[int]]:
    """Return the digest of ``loop`` at a choice of an arrival or a lane, and of ``extra``.

    And the numbers of the tasks that are in sets, or keys of dicts, whose order a set order may decide.
    """
    walk = Walk(loop, unseen)
    order = getattr(loop, "set_order", None) or getattr(loop, "set_order_mask", 0)
    walk.put(str(order), loop.batch_left, hash(random.getstate()))
    _put_ready(walk)
    _put_pending(walk)
    live = sorted(live_tasks(loop), key=lambda task: (path_of(loop, task), getattr(task, "number", 0)))
    walk.refs(live)
    walk.ref(loop.scratch)
    walk.ref(extra)
    return walk.digest(), frozenset(walk.members)


def _put_ready(walk: Walk) -> None:
    """Append the ready queue; in relaxed schedules the order of neighbouring turns is still to be chosen."""
    loop = walk.loop
    relaxed = loop.settings.rung is Rung.RELAXED
    turns: list[Any] = []

    def end_of_turns() -> None:
        if relaxed:
            turns.sort(key=lambda handle: path_of(loop, turn_task(handle)))
        walk.refs(turns)
        turns.clear()

    for handle in loop._ready:  # type: ignore[attr-defined]
        if handle._cancelled:
            continue
        if turn_task(handle) is not None:
            turns.append(handle)
            continue
        end_of_turns()
        walk.ref(handle)
    end_of_turns()


def _put_pending(walk: Walk) -> None:
    """Append parked ops by name, jobs also by age, and timers by deadline, as seconds from now."""
    loop = walk.loop
    parked = [op for op in loop.parked if alive(op)]
    age = {op: rank for rank, op in enumerate(parked)}
    iteration = getattr(loop, "iteration", 0)
    for op in sorted(parked, key=lambda op: (str(op), op.number)):
        walk.put(op.name, op.kind, op.rank, op.early, op.interesting, max(0, getattr(op, "ripe", 0) - iteration))
        walk.put(age[op] if op.kind == "job" else "")
        walk.refs((op.owner, op.target, op.deliver, getattr(op, "pool", None)))
    now_s = loop.now() if hasattr(loop, "now") else loop.time()
    timers: Any = loop._scheduled  # type: ignore[attr-defined]
    for timer in sorted(timers, key=lambda timer: (timer._when, timer.number)):
        if timer._cancelled:
            continue
        left = round((timer._when - now_s) / TIME_GRID_S)
        walk.put(timer.sleep, max(0, left) if timer.sleep else left, timer.rank, timer.early)
        walk.ref(timer)


# -- what objects consist of ---------------------------------------------------------------------------


def _task(walk: Walk, task: Any) -> None:
    _future(walk, task)
    if not task.done():
        walk.put(task.cancelling(), bool(getattr(task, "_must_cancel", False)))
        walk.refs((getattr(task, "_cancel_message", None), task._fut_waiter, task.get_coro()))
    contexts = [item for item in gc.get_referents(task) if type(item) is _CONTEXT]
    walk.refs(contexts)
    walk.ref(task in walk.loop.interesting_tasks)


def _future(walk: Walk, future: Any) -> None:
    walk.put(type(future).__name__, future._state)
    if future._state == "FINISHED":
        walk.refs((future._exception, future._result if future._exception is None else None))
    walk.put(bool(getattr(future, "_log_traceback", False)))
    for callback, context in future._callbacks or ():
        walk.refs((callback, context))
    objects.put_attributes(walk, future)


def _handle(walk: Walk, handle: Any) -> None:
    walk.put(handle._cancelled)
    if not handle._cancelled:
        walk.ref(handle._callback)
        walk.refs(handle._args or ())
        walk.ref(handle._context)


def _context(walk: Walk, context: Any) -> None:
    for variable, value in sorted(context.items(), key=lambda item: item[0].name):
        walk.put(variable.name)
        walk.ref(value)


def _suspended(walk: Walk, coro: Any) -> None:
    """Append a coroutine, generator or async generator: where it stands, its locals and its stack."""
    frame = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None) or getattr(coro, "ag_frame", None)
    if frame is None:
        walk.put("ended")
        return
    code = frame.f_code
    walk.put(code.co_qualname, code.co_firstlineno, frame.f_lasti)
    walk.refs(item for item in gc.get_referents(coro) if type(item) not in (types.FrameType, types.CodeType))


def _sequence(walk: Walk, value: Any) -> None:
    walk.put(type(value).__name__, len(value))
    walk.refs(value)
    objects.put_attributes(walk, value)


def _mapping(walk: Walk, value: Any) -> None:
    walk.put(type(value).__name__, len(value))
    for key, item in list(value.items()):
        walk.ref(key)
        if isinstance(key, asyncio.Future):
            walk.members.add(getattr(key, "number", -1) if isinstance(key, asyncio.Task) else -1)
        walk.ref(item)
    objects.put_attributes(walk, value)


def _set(walk: Walk, value: Any) -> None:
    """Append a set without an order: tasks by path, plain values by text, the rest as it iterates."""
    walk.put("set", len(value))

    def key(item: Any) -> str:
        if isinstance(item, asyncio.Task):
            return f"1 {path_of(walk.loop, item)}"
        return f"0 {item!r}" if type(item) in _INLINE or type(item) is tuple else "2"

    for item in value:
        if isinstance(item, asyncio.Future):
            walk.members.add(getattr(item, "number", -1) if isinstance(item, asyncio.Task) else -1)
    walk.refs(sorted(value, key=key))


def _exception(walk: Walk, error: Any) -> None:
    walk.put(type(error).__qualname__)
    walk.refs(error.args)
    walk.refs((error.__cause__, error.__context__))
    objects.put_attributes(walk, error)


def _method(walk: Walk, method: Any) -> None:
    walk.refs((method.__self__, method.__func__))


def _builtin(walk: Walk, function: Any) -> None:
    walk.put(function.__name__)
    if not isinstance(function.__self__, types.ModuleType):
        walk.ref(function.__self__)


def _iterator(walk: Walk, value: Any) -> None:
    """Append a built-in iterator: what it runs over and where it is, which its referents do not show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pickling of itertools, deprecated since 3.12
        state = value.__reduce__()
    walk.put(type(value).__name__)
    walk.refs(state[1:])


def _by_referents(walk: Walk, value: Any) -> None:
    walk.put(type(value).__name__)
    walk.refs(gc.get_referents(value))


_CONTEXT = type(__import__("contextvars").copy_context())
_HANDLERS: dict[type, Handler] = {
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
    types.MappingProxyType: _mapping,
    set: _set,
    frozenset: _set,
    collections.deque: _sequence,
    types.CoroutineType: _suspended,
    types.GeneratorType: _suspended,
    types.AsyncGeneratorType: _suspended,
    types.FunctionType: objects.put_function,
    types.MethodType: _method,
    types.BuiltinMethodType: _builtin,
    types.CellType: objects.put_cell,
    asyncio.Handle: _handle,
    _CONTEXT: _context,
}
# Built in C, and nothing but what it refers to: iterators, asyncio's wrappers, functools.partial and the like.
_PLAIN_C = {"coroutine_wrapper", "FutureIter", "_asyncio.FutureIter", _STEP, "async_generator_asend", "partial"}
_PLAIN_C |= {"async_generator_athrow", "method-wrapper", "dict_items", "dict_keys", "dict_values"}


def _is_iterator(kind: type) -> bool:
    if kind.__module__ == "itertools":
        return "__reduce__" in vars(kind)
    return kind.__module__ == "builtins" and (
        kind.__name__.endswith("iterator") or kind in (enumerate, zip, map, filter)
    )


def _find_handler(value: Any) -> Handler:
    """Return the handler of a type that is met for the first time."""
    kind = type(value)
    handler: Handler
    if isinstance(value, asyncio.Task):
        handler = _task
    elif isinstance(value, asyncio.Future):
        handler = _future
    elif isinstance(value, asyncio.Handle):
        handler = _handle
    elif isinstance(value, BaseException):
        handler = _exception
    elif _is_iterator(kind):
        handler = _iterator
    elif kind.__name__ in _PLAIN_C:
        handler = _by_referents
    elif isinstance(value, dict):
        handler = _mapping
    elif isinstance(value, (list, tuple, collections.deque)):
        handler = _sequence
    elif isinstance(value, (set, frozenset)):
        handler = _set
    elif isinstance(value, enum.Enum):
        handler = objects.put_member
    else:
        handler = objects.handler_of(value)
    _HANDLERS[kind] = handler
    return handler
