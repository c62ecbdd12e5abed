"""Random asyncio programs: a seed gives a program, and a program writes what it sees to a list.

Owns the grammar of programs; must not know which loop runs them. A loop offers ``park(name)``, a future that
something outside completes; everything else is plain asyncio.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Durations are this times powers of four, each written once per program and run at most three times: no two
# sums of them are equal, so the order of deadlines does not depend on how fast the machine is. Deadlines that
# are meant to tie are set in one go: same_deadline, same_delay, twins.
UNIT_S = 0.004
BASE = 4
DURATIONS = 10
MAX_STATEMENTS = 40

Statement = tuple[Any, ...]
Body = tuple[Statement, ...]


class Boom(Exception):
    """What a program raises on purpose."""


@dataclass(frozen=True)
class Spec:
    """A program as data. outside: whether it has ops that something outside completes."""

    seed: int
    tasks: tuple[Body, ...]
    ending: str
    outside: bool


@dataclass
class Writer:
    """Draws statements; keeps the budget of a program."""

    rng: random.Random
    outside: bool
    portable: bool
    durations: list[float]
    left: int = MAX_STATEMENTS
    names: int = 0
    in_generator: bool = False
    spawned: list[int] = field(default_factory=list)

    def name(self) -> int:
        self.names += 1
        return self.names

    def duration(self) -> float:
        return self.durations.pop()

    def body(self, depth: int, at_least: int = 1) -> Body:
        statements: list[Statement] = []
        for _ in range(self.rng.randint(at_least, 4)):
            if self.left <= 0:
                break
            self.left -= 1
            statements.append(self.statement(depth))
        return tuple(statements)

    def bodies(self, depth: int, most: int = 3) -> tuple[Body, ...]:
        return tuple(self.body(depth + 1) for _ in range(self.rng.randint(2, most)))

    def statement(self, depth: int) -> Statement:
        rng = self.rng
        kinds = list(SIMPLE)
        if self.outside:
            kinds += OUTSIDE
        if depth < 3:
            kinds += NESTED
        if self.portable:
            kinds = [kind for kind in kinds if kind not in VERSIONED]
        if not self.durations:
            kinds = [kind for kind in kinds if kind not in TIMED]
        if self.in_generator:
            kinds = [kind for kind in kinds if kind != "generator"]
        kind = rng.choice(kinds)
        key = rng.randrange(2)
        if kind in ("log", "point", "to_thread", "call_soon"):
            return kind, self.name()
        if kind in ("job", "job_in_order"):
            return kind, self.name()
        if kind == "yield":
            return kind, rng.randint(1, 4)
        if kind in ("sleep", "twins"):
            return kind, self.duration()
        if kind == "call_later":
            return kind, self.duration() if rng.random() < 0.7 else 0, self.name(), rng.random() < 0.2
        if kind == "same_deadline":
            return kind, self.duration(), tuple(self.name() for _ in range(rng.randint(2, 5)))
        if kind == "same_delay":
            return kind, self.duration(), tuple(self.name() for _ in range(rng.randint(2, 5)))
        if kind in ("join", "cancel", "on_done"):
            return kind, rng.choice(self.spawned) if self.spawned else 0, self.name()
        if kind == "spawn":
            name = self.name()
            body = self.body(depth + 1)
            self.spawned.append(name)
            return kind, name, body
        if kind in ("put", "resolve", "fail"):
            return kind, key, self.name()
        if kind in (
            "set",
            "clear",
            "wait_event",
            "get",
            "notify",
            "notify_all",
            "cond_wait",
            "await_future",
            "context",
        ):
            return kind, key
        if kind in ("gather", "as_completed", "group"):
            return kind, self.bodies(depth), rng.random() < 0.5, self.name()
        if kind == "wait":
            limit = self.duration() if self.durations and rng.random() < 0.4 else None
            return kind, self.bodies(depth), rng.choice(WAITS), limit, self.name()
        if kind in ("timeout", "wait_for"):
            return kind, self.duration(), self.body(depth + 1), self.name()
        if kind in ("lock", "semaphore", "shield"):
            return kind, key, self.body(depth + 1), self.name()
        if kind == "generator":
            self.in_generator = True
            body = self.body(depth + 1)
            self.in_generator = False
            return kind, body, rng.randint(1, 3), rng.random() < 0.5, self.name()
        if kind == "guard":
            return (
                kind,
                self.body(depth + 1),
                rng.choice(("boom", "cancel", "finally")),
                self.body(depth + 1),
                self.name(),
            )
        assert kind == "raise", kind
        return (kind,)


SIMPLE = (
    *(
        "log",
        "yield",
        "yield",
        "sleep",
        "sleep",
        "twins",
        "call_soon",
        "call_later",
        "same_deadline",
        "same_delay",
        "join",
    ),
    *("cancel", "on_done", "put", "get", "set", "clear", "wait_event", "notify", "notify_all", "cond_wait"),
    *("await_future", "resolve", "fail", "context", "raise"),
)
OUTSIDE = ("point", "point", "point", "job", "job_in_order", "to_thread")
NESTED = (
    *("spawn", "spawn", "spawn", "gather", "as_completed", "group", "wait", "timeout", "timeout", "wait_for", "lock"),
    *("lock", "semaphore", "shield", "generator", "guard", "guard"),
)
# What the standard library does differently from one version of Python to the next: how many turns it takes, and
# since 3.13 a cancelled Condition.wait() passes its notification on.
VERSIONED = ("cond_wait", "as_completed", "group", "wait_for", "timeout", "lock", "semaphore", "gather")
KEYED = ("set", "clear", "wait_event", "get", "notify", "notify_all", "cond_wait", "await_future", "context")
TIMED = ("sleep", "twins", "call_later", "same_deadline", "same_delay", "timeout", "wait_for")
WAITS = (asyncio.FIRST_COMPLETED, asyncio.FIRST_EXCEPTION, asyncio.ALL_COMPLETED)


def write(seed: int, *, outside: bool = True, portable: bool = False, durations: int = DURATIONS) -> Spec:
    """Return the program of ``seed``.

    outside: with points and executor jobs. portable: only what takes the same turns on every supported Python.
    durations: how many different ones; the longest is ``UNIT_S * BASE ** (durations - 1)``.
    """
    rng = random.Random(f"program {seed}")
    pool = [UNIT_S * BASE**power for power in range(durations)]
    rng.shuffle(pool)
    writer = Writer(rng, outside, portable, pool)
    tasks = tuple(writer.body(0, at_least=2) for _ in range(rng.randint(2, 4)))
    return Spec(seed, tasks, rng.choice(("gather", "joins", "cancel")), outside)


class Seen(NamedTuple):
    """What one run of a program showed."""

    ending: str
    events: tuple[Any, ...]


class Program:
    """One run of a spec. events: what it saw, in order."""

    def __init__(self, spec: Spec, make_pool: Callable[[], ThreadPoolExecutor]) -> None:
        self.spec = spec
        self.events: list[tuple[Any, ...]] = []
        self.outside = 0
        self.over = False  # from the ending on nothing is begun, and a cancellation is not swallowed
        self.make_pool = make_pool

    def log(self, *event: Any) -> None:
        self.events.append(event)

    async def __call__(self) -> None:
        self.loop: Any = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda _loop, _context: None)
        self.locks = [asyncio.Lock() for _ in range(2)]
        self.semaphores = [asyncio.Semaphore(2) for _ in range(2)]
        self.set_events = [asyncio.Event() for _ in range(2)]
        self.conditions = [asyncio.Condition() for _ in range(2)]
        self.queues: list[asyncio.Queue[Any]] = [asyncio.Queue(1), asyncio.PriorityQueue()]
        self.futures: list[asyncio.Future[Any]] = [self.loop.create_future() for _ in range(2)]
        self.variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
        self.tasks: dict[int, asyncio.Task[Any]] = {}
        self.pool = self.make_pool()
        top = [asyncio.create_task(self.task(f"t{index}", body)) for index, body in enumerate(self.spec.tasks)]
        if self.spec.ending == "gather":
            results = await asyncio.gather(*top, return_exceptions=True)
            self.log("results", *map(plain, results))
        else:
            if self.spec.ending == "cancel":
                for _ in range(6):
                    await asyncio.sleep(0)
                top[0].cancel()
            for number, task in enumerate(top):
                self.log("top", number, await self.outcome(task))
        self.log("end")

    async def task(self, name: Any, body: Body) -> Any:
        self.log(name, "starts")
        try:
            await self.run(name, body)
        except BaseException as error:
            self.log(name, plain(error))
            raise
        self.log(name, "returns")
        return name

    async def outcome(self, waited: Any) -> Any:
        """Await and return what came of it; a cancellation of the one who waits goes through."""
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        try:
            return plain(await waited)
        except asyncio.CancelledError as error:
            if task.cancelling() > before or self.over:
                raise
            return plain(error)
        except Exception as error:
            return plain(error)

    async def run(self, me: Any, body: Body) -> None:
        for kind, *rest in body:
            if self.over:
                raise asyncio.CancelledError
            await getattr(self, f"do_{kind}")(me, *rest)

    def op_name(self, name: int) -> str:
        """Return a name that no other op has: a statement may run more than once."""
        self.outside += 1
        return f"{name}.{self.outside}"

    def work(self, name: int) -> Callable[[], int]:
        def function() -> int:
            self.log("job", name)
            if name % 5 == 0:
                raise Boom(name)
            return name

        function.__name__ = self.op_name(name)
        return function

    async def do_log(self, me: Any, name: int) -> None:
        self.log(me, name)

    async def do_yield(self, me: Any, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(0)
        self.log(me, "yielded", times)

    async def do_sleep(self, me: Any, duration_s: float) -> None:
        await asyncio.sleep(duration_s)
        self.log(me, "slept", duration_s)

    async def do_twins(self, me: Any, duration_s: float) -> None:
        async def twin(number: int) -> None:
            await asyncio.sleep(duration_s)
            self.log(me, "twin", number)

        await asyncio.gather(*map(twin, range(3)))

    async def do_point(self, me: Any, name: int) -> None:
        await self.loop.park(self.op_name(name))
        self.log(me, "point", name)

    async def do_job(self, me: Any, name: int) -> None:
        self.log(me, "job", await self.outcome(self.loop.run_in_executor(None, self.work(name))))

    async def do_job_in_order(self, me: Any, name: int) -> None:
        self.log(me, "job", await self.outcome(self.loop.run_in_executor(self.pool, self.work(name))))

    async def do_to_thread(self, me: Any, name: int) -> None:
        # to_thread would hide the name of the function behind that of contextvars.Context.run
        run = self.work(name)
        context = contextvars.copy_context()

        def function() -> int:
            return context.run(lambda: (self.log("variable", self.variable.get()), run())[1])

        function.__name__ = run.__name__
        self.log(me, "thread", await self.outcome(self.loop.run_in_executor(None, function)))

    async def do_call_soon(self, me: Any, name: int) -> None:
        self.loop.call_soon(self.log, "soon", name)

    async def do_call_later(self, me: Any, delay_s: float, name: int, cancelled: bool) -> None:
        handle = self.loop.call_later(delay_s, self.log, "later", name)
        if cancelled:
            handle.cancel()

    async def do_same_deadline(self, me: Any, delay_s: float, names: tuple[int, ...]) -> None:
        when = self.loop.time() + delay_s
        for name in names:
            self.loop.call_at(when, self.log, "at", name)

    async def do_same_delay(self, me: Any, delay_s: float, names: tuple[int, ...]) -> None:
        for name in names:
            self.loop.call_later(delay_s, self.log, "after", name)

    async def do_spawn(self, me: Any, name: int, body: Body) -> None:
        self.tasks[name] = asyncio.create_task(self.task(name, body))

    async def do_join(self, me: Any, target: int, name: int) -> None:
        task = self.tasks.get(target)
        if task is None or task is asyncio.current_task():
            return
        self.log(me, "joined", target, await self.outcome(asyncio.wait([task])) and plain_task(task))

    async def do_cancel(self, me: Any, target: int, name: int) -> None:
        task = self.tasks.get(target)
        if task is not None:
            self.log(me, "cancels", target, task.cancel())

    async def do_on_done(self, me: Any, target: int, name: int) -> None:
        task = self.tasks.get(target)
        if task is not None:
            task.add_done_callback(lambda done: self.log("done", name, plain_task(done)))

    async def do_put(self, me: Any, key: int, name: int) -> None:
        await self.queues[key].put(name)
        self.log(me, "put", name)

    async def do_get(self, me: Any, key: int) -> None:
        self.log(me, "got", await self.queues[key].get())

    async def do_set(self, me: Any, key: int) -> None:
        self.set_events[key].set()

    async def do_clear(self, me: Any, key: int) -> None:
        self.set_events[key].clear()

    async def do_wait_event(self, me: Any, key: int) -> None:
        await self.set_events[key].wait()
        self.log(me, "event", key)

    async def do_notify(self, me: Any, key: int) -> None:
        async with self.conditions[key]:
            self.conditions[key].notify()

    async def do_notify_all(self, me: Any, key: int) -> None:
        async with self.conditions[key]:
            self.conditions[key].notify_all()

    async def do_cond_wait(self, me: Any, key: int) -> None:
        async with self.conditions[key]:
            await self.conditions[key].wait()
            self.log(me, "notified", key)

    async def do_await_future(self, me: Any, key: int) -> None:
        self.log(me, "future", await self.outcome(asyncio.shield(self.futures[key])))

    async def do_resolve(self, me: Any, key: int, name: int) -> None:
        if not self.futures[key].done():
            self.futures[key].set_result(name)

    async def do_fail(self, me: Any, key: int, name: int) -> None:
        if not self.futures[key].done():
            self.futures[key].set_exception(Boom(name))

    async def do_context(self, me: Any, key: int) -> None:
        self.log(me, "variable", self.variable.get())
        self.variable.set(self.variable.get() + 1 + key)

    async def do_raise(self, me: Any) -> None:
        raise Boom(me)

    async def do_gather(self, me: Any, bodies: tuple[Body, ...], collect: bool, name: int) -> None:
        children = [self.task(f"{name}.{number}", body) for number, body in enumerate(bodies)]
        self.log(me, "gathered", await self.outcome(asyncio.gather(*children, return_exceptions=collect)))

    async def do_as_completed(self, me: Any, bodies: tuple[Body, ...], _flag: bool, name: int) -> None:
        # Tasks, because as_completed makes a set of what it gets, and coroutines hash by address.
        children = [asyncio.create_task(self.task(f"{name}.{number}", body)) for number, body in enumerate(bodies)]
        for one in asyncio.as_completed(children):
            self.log(me, "completed", await self.outcome(one))

    async def do_group(self, me: Any, bodies: tuple[Body, ...], _flag: bool, name: int) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for number, body in enumerate(bodies):
                    group.create_task(self.task(f"{name}.{number}", body))
        except* Boom as errors:
            self.log(me, "group", *sorted(map(str, errors.exceptions)))

    async def do_wait(self, me: Any, bodies: tuple[Body, ...], when: str, limit_s: float | None, name: int) -> None:
        children = [asyncio.create_task(self.task(f"{name}.{number}", body)) for number, body in enumerate(bodies)]
        done, pending = await asyncio.wait(children, return_when=when, timeout=limit_s)
        self.log(me, "waited", *[child in done for child in children])
        for child in pending:
            child.cancel()

    async def do_timeout(self, me: Any, limit_s: float, body: Body, name: int) -> None:
        try:
            async with asyncio.timeout(limit_s):
                await self.run(me, body)
        except TimeoutError:
            self.log(me, "timeout", name)

    async def do_wait_for(self, me: Any, limit_s: float, body: Body, name: int) -> None:
        self.log(me, "waited for", await self.outcome(asyncio.wait_for(self.task(name, body), limit_s)))

    async def do_lock(self, me: Any, key: int, body: Body, name: int) -> None:
        async with self.locks[key]:
            self.log(me, "locked", key)
            await self.run(me, [statement for statement in body if statement[0] != "lock"])  # type: ignore[arg-type]

    async def do_semaphore(self, me: Any, key: int, body: Body, name: int) -> None:
        async with self.semaphores[key]:
            self.log(me, "in", key)
            await self.run(me, body)

    async def do_shield(self, me: Any, key: int, body: Body, name: int) -> None:
        inner = self.tasks[name] = asyncio.create_task(self.task(name, body))
        self.log(me, "shielded", await self.outcome(asyncio.shield(inner)))

    async def do_generator(self, me: Any, body: Body, items: int, close: bool, name: int) -> None:
        async def generate() -> Any:
            try:
                for item in range(3):
                    await self.run(me, body)
                    yield item
            finally:
                self.log("generator", name)
                await asyncio.sleep(0)
                self.log("generator closed", name)

        source = generate()
        async for item in source:
            self.log(me, "item", item)
            if item + 1 == items:
                break
        if close:
            await source.aclose()
        else:
            self.tasks[-name] = source  # type: ignore[assignment]  # alive, so that no collector decides when it ends

    async def do_guard(self, me: Any, body: Body, handler: str, after: Body, name: int) -> None:
        try:
            await self.run(me, body)
        except Boom:
            self.log(me, "caught", name)
            if handler == "boom":
                await self.run(me, after)
        except asyncio.CancelledError:
            self.log(me, "cancelled", name)
            if handler != "cancel" or self.over:
                raise
        finally:
            if handler == "finally" and not self.over:
                await self.run(me, after)


def plain(value: Any) -> Any:
    """Return a value that is equal in two runs when they saw the same."""
    if isinstance(value, BaseExceptionGroup):
        return "group", *sorted(str(plain(error)) for error in value.exceptions)
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    return value if isinstance(value, (int, str, float, bool, type(None))) else type(value).__name__


def plain_task(task: asyncio.Task[Any]) -> Any:
    """Return what came of a task."""
    if not task.done():
        return "pending"
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return plain(task.result() if error is None else error)
