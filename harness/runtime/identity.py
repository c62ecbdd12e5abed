"""Who is who in an execution: task and future numbers, and paths made of coroutine names.

Owns the numbering and the ``parent/child#n`` names; must not know scheduling.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import weakref
from collections.abc import Callable, Coroutine, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.runtime.uses import drops_result, only_asks, only_waits

if TYPE_CHECKING:
    from harness.runtime.loop import ControlledLoop

# A resolver looks at a wrapper coroutine and returns the coroutine or the name that it stands for,
# or None when it cannot tell. It may be called before the coroutine was started.
Resolver = Callable[[Any], "Coroutine[Any, Any, Any] | str | None"]


class SetOrder(NamedTuple):
    """How sets of tasks and of futures iterate: an order of eight neighbours, and whether the eights go backwards.

    A set iterates in the order of the low bits of its members' hashes, so they decide it.
    """

    order: tuple[int, ...]
    backwards: bool

    def hash_of(self, number: int) -> int:
        """Return the hash of the object that was created as ``number``."""
        eights = number >> 3
        return (~eights & _MANY if self.backwards else eights) << 3 | self.order.index(number & 7)

    def __str__(self) -> str:
        return f"set order {''.join(map(str, self.order))}{' backwards' if self.backwards else ''}"


_MANY = (1 << 24) - 1

# Creation order first. invariant: any three of eight neighbours meet in each of their six orders (a sequence
# covering array of strength three, found by greedy search).
SET_ORDERS = (
    SetOrder((0, 1, 2, 3, 4, 5, 6, 7), backwards=False),
    SetOrder((7, 6, 5, 4, 3, 2, 1, 0), backwards=True),
    SetOrder((3, 5, 1, 7, 0, 6, 2, 4), backwards=False),
    SetOrder((4, 2, 6, 0, 7, 1, 5, 3), backwards=True),
    SetOrder((6, 1, 0, 7, 3, 4, 5, 2), backwards=False),
    SetOrder((5, 2, 7, 0, 4, 3, 6, 1), backwards=True),
    SetOrder((3, 4, 7, 0, 2, 5, 1, 6), backwards=False),
    SetOrder((2, 1, 5, 6, 4, 3, 0, 7), backwards=True),
    SetOrder((4, 3, 1, 6, 2, 5, 7, 0), backwards=False),
    SetOrder((0, 7, 6, 5, 1, 2, 3, 4), backwards=True),
)

# The hashes of the first so many tasks in each order, by the order's place in SET_ORDERS.
FIRST = 64
FIRST_HASHES = tuple(tuple(map(order.hash_of, range(FIRST))) for order in SET_ORDERS)

# By the name of the code, because hashing code goes through all its constants.
_resolvers: dict[str, dict[CodeType, Resolver]] = {}


def see_through(code: CodeType, resolver: Resolver) -> None:
    """Name tasks by what ``resolver`` finds inside coroutines that run ``code``.

    Used by adapters, so that a step is called by its own name and not by its framework's wrapper.
    """
    _resolvers.setdefault(code.co_name, {})[code] = resolver


def coroutine_name(coro: Any) -> str:
    """Return the plain name of ``coro``, seen through the wrappers that adapters registered."""
    try:
        if coro.cr_code.co_name not in _resolvers:
            return coro.__name__  # type: ignore[no-any-return]
    except AttributeError:  # a generator, or an awaitable of another kind
        return getattr(coro, "__name__", None) or type(coro).__name__
    for _ in range(8):  # wrappers nest a few levels; a cycle must not hang us
        code: CodeType | None = getattr(coro, "cr_code", None)
        resolver = None if code is None else _resolvers.get(code.co_name, {}).get(code)
        found = None if resolver is None else resolver(coro)
        if found is None:
            break
        if isinstance(found, str):
            return found
        coro = found
    return getattr(coro, "__name__", None) or type(coro).__name__


# A named tuple without the call of a Python function that its class would make.
_new_tuple: Any = tuple.__new__
_new_task: Any = asyncio.Task.__new__
_init_task: Any = asyncio.Task.__init__


class Birth(NamedTuple):
    """How a task came to be: the number of its parent (-1: none) and its coroutine's name."""

    parent: int
    name: str


class ControlledTask(asyncio.Task[Any]):
    """An ``asyncio.Task`` that hashes by creation number.

    Sets of tasks then iterate the same way in every process: agent-framework 1.23.0 keeps its tasks in
    a set and cancels from it, and ``TaskGroup`` does the same.
    """

    # Slots, since a dictionary for each task costs a tenth of it; a program may add attributes of its own.
    __slots__ = ("hash_value", "number", "path")
    number: int
    hash_value: int
    path: str  # set by lane_path()

    def __init__(self, coro: Any, *, loop: ControlledLoop, name: str | None = None, **kwargs: Any) -> None:
        number = be_born(self, coro, loop)
        # Default names count per process; ours count per loop.
        _init_task(self, coro, loop=loop, name=f"Task-{number + 1}" if name is None else name, **kwargs)

    def __hash__(self) -> int:
        return self.hash_value


# What asyncio and programs print of a task is what they print of a stock one.
ControlledTask.__name__ = "Task"


class ControlledFuture(asyncio.Future[Any]):
    """An ``asyncio.Future`` that hashes by the order in which futures were first hashed."""

    hash_value: int

    def __hash__(self) -> int:
        try:
            return self.hash_value
        except AttributeError:
            loop: Any = self.get_loop()
            self.hash_value = loop.set_order.hash_of(loop.hashed_futures)
            loop.hashed_futures += 1
            return self.hash_value


ControlledFuture.__name__ = "Future"


@contextlib.contextmanager
def watch_hashes(note: Callable[[int], None]) -> Iterator[None]:
    """Call ``note`` with the number of each task whose hash is used, and with -1 for each future.

    Left out are hashes that put nothing into a set which the program could iterate (``_is_private``): a program that
    uses no other hash behaves alike under all orders of sets.
    """
    original, original_future = ControlledTask.__hash__, ControlledFuture.__hash__

    def noted(self: ControlledTask) -> int:
        if not _is_private(sys._getframe(1)):
            note(self.number)
        return original(self)

    def noted_future(self: ControlledFuture) -> int:
        if not _is_private(sys._getframe(1)):
            note(-1)
        return original_future(self)

    ControlledTask.__hash__ = noted  # type: ignore[method-assign]
    ControlledFuture.__hash__ = noted_future  # type: ignore[method-assign]
    try:
        yield
    finally:
        ControlledTask.__hash__ = original  # type: ignore[method-assign]
        ControlledFuture.__hash__ = original_future  # type: ignore[method-assign]


def keep_hashes(*functions: Any) -> None:
    """State that the hashes which ``functions`` take stay in containers that only they and their like reach."""
    _private.update(function.__code__ for function in functions if isinstance(function, FunctionType))


def _is_private(frame: Any) -> bool:
    """Return whether a hash that ``frame`` asks for reaches no set that the program could iterate.

    So it is with asyncio's own register of tasks; with ``gather``, whose dict iterates by insertion; with a membership
    test; and with ``asyncio.wait`` as a statement of its own: it does the same to each of its futures, in any
    order, and the sets that it returns are dropped.
    """
    code = frame.f_code
    if code in _private or only_asks(frame):
        return True
    if code is _REGISTER:
        return frame.f_back.f_code in _BIRTHS
    if frame.f_back is not None and frame.f_back.f_code is _ALL_TASKS:  # a comprehension in it, up to Python 3.11
        frame = frame.f_back
    if frame.f_code is _ALL_TASKS:
        return frame.f_back.f_code in _private
    if code is _INNER_WAIT:
        frame = frame.f_back
    if frame.f_code is WAIT:
        return drops_result(frame.f_back)
    return only_waits(frame)


_REGISTER = weakref.WeakSet.add.__code__
_ALL_TASKS = getattr(asyncio.all_tasks, "__code__", None)  # C code from 3.14 on
WAIT = asyncio.wait.__code__
_INNER_WAIT: CodeType = asyncio.tasks._wait.__code__  # type: ignore[attr-defined]
_private = {asyncio.gather.__code__}


def make_task(loop: ControlledLoop, coro: Any, *, name: str | None = None, **kwargs: Any) -> ControlledTask:
    """Create a task; this is the factory that frameworks find on the loop and wrap."""
    task: ControlledTask = _new_task(ControlledTask)  # what the class does when it is called, in fewer calls
    number = be_born(task, coro, loop)
    name = f"Task-{number + 1}" if name is None else name
    if kwargs:
        _init_task(task, coro, loop=loop, name=name, **kwargs)
    else:  # which is cheaper than unpacking nothing
        _init_task(task, coro, loop=loop, name=name)
    return task


_BIRTHS = ControlledTask.__init__.__code__, make_task.__code__


def be_born(task: ControlledTask, coro: Any, loop: ControlledLoop) -> int:
    """Give a task its number and its hash; return the number."""
    parent = asyncio.current_task(loop)
    births = loop.births
    task.number = number = len(births)
    # Which order is a choice of the search: stock asyncio leaves the order of such a set open.
    task.hash_value = loop.first_hashes[number] if number < FIRST else loop.set_order.hash_of(number)
    births.append(_new_tuple(Birth, (-1 if parent is None else getattr(parent, "number", -1), coroutine_name(coro))))
    return number


def task_path(loop: Any, number: int) -> str:
    """Return ``parent/child#n`` for task ``number``; the root task is left out of its children's paths.

    ``#n`` is written from the second sibling of one name on: ``done``, ``done#2``.
    """
    births: list[Birth] = loop.births
    parts: list[str] = []
    while number >= 0:
        birth = births[number]
        ordinal = ordinal_of(loop, number)
        if birth.parent >= 0 or not parts:
            parts.append(birth.name if ordinal == 1 else f"{birth.name}#{ordinal}")
        number = birth.parent
    return "/".join(reversed(parts))


def ordinal_of(loop: Any, number: int) -> int:
    """Return which one task ``number`` is among the siblings of its name, from 1 on; each birth is counted once."""
    births: list[Birth] = loop.births
    ordinals: list[int] = loop.ordinals
    siblings: dict[Birth, int] = loop.siblings
    for index in range(len(ordinals), number + 1):
        birth = births[index]
        siblings[birth] = ordinal = siblings.get(birth, 0) + 1
        ordinals.append(ordinal)
    return ordinals[number]


def lane_path(loop: ControlledLoop, task: Any) -> str:
    """Return ``path_of`` a task, "" for the root, kept on it: its parents and elder siblings stay the same."""
    path: str | None = getattr(task, "path", None)
    if path is None:
        path = path_of(loop, task)
        if isinstance(task, ControlledTask):
            task.path = path = path if task.number else ""
    return path


def path_of(loop: Any, task: Any) -> str:
    """Return the path of any task: ours by number, a foreign one by its coroutine's name."""
    if task is None:
        return "loop"
    number = getattr(task, "number", None)
    if number is None:
        return coroutine_name(task.get_coro()) if hasattr(task, "get_coro") else type(task).__name__
    return task_path(loop, number)
