"""What asyncio's objects, coroutines and containers consist of, for a fingerprint.

Owns one reader per type; must not know the loop's queues. Ordinary objects are read by ``objects``.
"""

from __future__ import annotations

import asyncio
import collections
import enum
import gc
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.runtime import hidden, objects, programs
from harness.runtime.faults import Countdown, Fate, Moments
from harness.runtime.identity import SET_ORDERS, WAIT, path_of
from harness.runtime.task_sets import TaskDict, TaskSet
from harness.runtime.uses import drops_result

if TYPE_CHECKING:
    from harness.runtime.fingerprint import Walk

INLINE = frozenset({int, bool, float, complex, bytes, str, type(None), type(...), type(NotImplemented), range})
_STEP = "TaskStepMethWrapper"

Handler = Callable[["Walk", Any], None]


def _task(walk: Walk, task: Any) -> None:
    _future(walk, task)
    if (name := task.get_name()) != f"Task-{getattr(task, 'number', -1) + 1}":
        walk.put(name)
    if not task.done():
        walk.put(task.cancelling(), bool(getattr(task, "_must_cancel", False)))
        walk.refs((getattr(task, "_cancel_message", None), task._fut_waiter, task.get_coro()))
    contexts = [item for item in gc.get_referents(task) if type(item) is _CONTEXT]
    walk.refs(contexts)
    walk.ref(task in walk.loop.interesting_tasks)
    walk.put(getattr(task, "number", None), getattr(task, "hash_value", None))


def _future(walk: Walk, future: Any) -> None:
    walk.put(type(future).__name__, future._state)
    if future._state == "FINISHED":
        walk.refs((future._exception, future._result if future._exception is None else None))
    walk.put(bool(getattr(future, "_log_traceback", False)))
    for callback, context in future._callbacks or ():
        walk.refs((callback, context))
    for name, item in _attributes_of(future).items():
        walk.put(name)
        walk.ref(item)


def _attributes_of(future: Any) -> dict[str, Any]:
    """Return the attributes of a future or a task: it has no ``__dict__``, so only the collector shows them."""
    has_result = future._state == "FINISHED" and future._exception is None
    known = (future._result if has_result else None, getattr(future, "_cancel_message", None))
    dicts = [item for item in gc.get_referents(future) if type(item) is dict]
    return next((found for found in dicts if not any(found is item for item in known)), {})


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
    held = gc.get_referents(coro)
    if held and held[-1] is None and _awaited(coro) is not None:
        # Not the top of the stack, which is what it awaits: the exception that it handles. It is nothing before the
        # first exception that anything called by it handled, and None afterwards (genobject.c, gen_traverse).
        held.pop()
    waited = getattr(coro, "cr_await", None)
    if getattr(waited, "cr_code", None) is WAIT and drops_result(frame):
        # The set inside ``asyncio.wait`` is a copy that only it iterates, with the same effect in every order.
        walk.private.extend(item for item in gc.get_referents(waited) if type(item) is set)
    walk.refs(item for item in held if type(item) not in (types.FrameType, types.CodeType))


def _awaited(coro: Any) -> Any:
    for name in ("cr_await", "gi_yieldfrom", "ag_await"):
        if (awaited := getattr(coro, name, None)) is not None:
            return awaited
    return None


def _sequence(walk: Walk, value: Any) -> None:
    walk.put(type(value).__name__, len(value))
    walk.refs(value)
    if isinstance(value, collections.deque):
        walk.put(value.maxlen)
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
        return f"0 {item!r}" if type(item) in INLINE or type(item) is tuple else "2"

    if not any(value is item for item in walk.private):
        for item in value:
            if isinstance(item, asyncio.Future):
                walk.members.add(getattr(item, "number", -1) if isinstance(item, asyncio.Task) else -1)
    walk.refs(sorted(value, key=key))


def _task_set(walk: Walk, value: TaskSet) -> None:
    """Append the members without an order, and which orders agree with what was seen of it."""
    walk.put("tasks", len(value), [str(order) for order in value.orders] if len(value.orders) < len(SET_ORDERS) else "")
    walk.refs(
        sorted(value.members, key=lambda item: path_of(walk.loop, item) if isinstance(item, asyncio.Task) else "~")
    )


def _task_dict(walk: Walk, value: TaskDict) -> None:
    walk.put("by task", len(value))
    for key, item in value.items_by_age.items():
        walk.refs((key, item))


def _exception(walk: Walk, error: Any) -> None:
    walk.put(type(error).__qualname__)
    walk.refs(error.args)
    walk.refs((error.__cause__, error.__context__))
    hidden.put_error(walk, error)
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


def _fate(walk: Walk, fate: Fate) -> None:
    """Append what is still to happen to a run; what earlier executions taught is no state of this one."""
    walk.put("fate", fate.kind)
    walk.ref(fate.countdown)


def _countdown(walk: Walk, countdown: Countdown) -> None:
    walk.put("countdown", max(0, countdown.moment - countdown.passed))
    walk.ref(countdown.action)


_CONTEXT = type(__import__("contextvars").copy_context())
HANDLERS: dict[type, Handler] = {
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
    types.FunctionType: programs.put_function,
    types.MethodType: _method,
    types.BuiltinMethodType: _builtin,
    types.CellType: programs.put_cell,
    asyncio.Handle: _handle,
    _CONTEXT: _context,
    Fate: _fate,
    Countdown: _countdown,
    Moments: objects.put_constant,
    TaskSet: _task_set,
    TaskDict: _task_dict,
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


def find_handler(value: Any) -> Handler:
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
        handler = hidden.put_member
    else:
        handler = objects.handler_of(value)
    HANDLERS[kind] = handler
    return handler
