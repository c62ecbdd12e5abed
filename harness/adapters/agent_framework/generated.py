"""Generated workflows: small programs of steps whose expected result a plain model computes.

Owns the grammar, its interpreter as a functional workflow, and the model; must not know what draws from it.

A workflow is nested lists, so that it can be a message and part of a checkpoint:

    ["step", label, waits, fails]    returns its label after ``waits`` waits; ``fails``: not in its first attempt
    ["seq", part, ...]               one after the other; returns the list of results
    ["gather", part, ...]            side by side, by asyncio.gather
    ["group", part, ...]             side by side, in a TaskGroup
    ["limit", part]                  under asyncio.wait_for
    ["retry", part]                  once more when it fails
    ["race", part, part]             the first that completes; the other is cancelled
    ["state", label]                 writes the workflow's state
    ["ask", label]                   asks a human, and returns the answer
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import harness
from harness.runtime.identity import see_through

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # functional workflows are experimental, and say so at every decoration
    from agent_framework import RunContext, step, workflow

Spec = list[Any]
# choose(options, name) returns an index into ``options``, which are words, the plainest first.
Choose = Callable[[Sequence[str], str], int]

PLAIN = ("step", "gather", "seq", "group", "limit", "state")
# Features that meet bugs which are open in agent-framework 1.23.0: stragglers, stepwise retries, pauses.
OPEN_BUGS = ("retry", "race", "ask")


def generate(choose: Choose, *, features: tuple[str, ...] = PLAIN, max_siblings: int = 3, max_depth: int = 2) -> Spec:
    """Return a workflow that ``choose`` draws from the grammar; all zeros give a single step that waits for nothing.

    max_siblings: parts that run side by side or one after the other, at least 2. max_depth: how deep they nest.
    """
    count = 0

    def part(depth: int) -> Spec:
        nonlocal count
        count += 1
        label = f"s{count}"
        kinds = features if depth < max_depth else ("step",)
        kind = kinds[choose(kinds, f"kind of {label}")]
        if kind == "step":
            waits = choose(("0", "1", "2"), f"waits of {label}")
            return ["step", label, waits, bool(choose(("success", "failure"), f"outcome of {label}"))]
        if kind in ("state", "ask"):
            return [kind, label]
        if kind in ("limit", "retry"):
            return [kind, part(depth + 1)]
        counts = [str(number) for number in range(2, 3 if kind == "race" else max(3, max_siblings + 1))]
        siblings = 2 + choose(counts, f"siblings of {label}")
        return [kind, *(part(depth + 1) for _ in range(siblings))]

    return part(0)


def expected(spec: Spec) -> Any:
    """Return what ``spec`` returns once nothing fails; a race is the set of what it may return."""
    kind, *rest = spec
    if kind in ("step", "state"):
        return rest[0]
    if kind == "ask":
        return "answer"
    if kind in ("limit", "retry"):
        return expected(rest[0])
    results = [expected(item) for item in rest]
    return ("one of", results) if kind == "race" else results


def agrees(result: Any, model: Any) -> bool:
    """Return whether ``result`` is what the model expects."""
    if isinstance(model, tuple):
        return any(agrees(result, option) for option in model[1])
    if isinstance(model, list):
        return (
            isinstance(result, list)
            and len(result) == len(model)
            and all(agrees(one, other) for one, other in zip(result, model, strict=True))
        )
    return bool(result == model)


def steps_of(spec: Spec) -> list[Spec]:
    """Return the steps of ``spec``, outermost first."""
    if spec[0] == "step":
        return [spec]
    return [found for item in spec[1:] if isinstance(item, list) for found in steps_of(item)]


@step
async def work(label: str, waits: int, fails: bool) -> str:
    """Wait, have an effect, return the label."""
    for number in range(waits):
        await harness.point(f"{label}.{number + 1}")
    if fails and harness.attempt() == 0:
        raise RuntimeError(f"{label} failed")
    return label


@workflow
async def generated_flow(spec: Spec, ctx: RunContext) -> Any:
    """Interpret ``spec``."""
    return await _interpret(spec, ctx)


async def _interpret(spec: Spec, ctx: RunContext) -> Any:
    kind, *rest = spec
    if kind == "step":
        return await work(*rest)
    if kind == "state":
        ctx.set_state(rest[0], rest[0])
        return rest[0]
    if kind == "ask":
        return await ctx.request_info({"question": rest[0]}, str, request_id=rest[0])
    if kind == "limit":
        # a step may be slow whenever it runs; only the first attempt gives up on it, or no resume would end
        return await asyncio.wait_for(_interpret(rest[0], ctx), 1000 if harness.attempt() == 0 else None)
    if kind == "retry":
        try:
            return await _interpret(rest[0], ctx)
        except RuntimeError:
            return await _interpret(rest[0], ctx)
    if kind == "seq":
        return [await _interpret(item, ctx) for item in rest]
    if kind == "gather":
        return list(await asyncio.gather(*(_interpret(item, ctx) for item in rest)))
    if kind == "group":
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_interpret(item, ctx)) for item in rest]
        return [task.result() for task in tasks]
    tasks = [asyncio.ensure_future(_interpret(item, ctx)) for item in rest]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    return next(task.result() for task in tasks if task in done)


def _part_name(coro: Any) -> str | None:
    """Name a part by its step, or by what it is, so that reports do not speak of the interpreter."""
    frame = coro.cr_frame
    spec = None if frame is None else frame.f_locals.get("spec")
    return None if not spec else str(spec[1] if spec[0] in ("step", "state", "ask") else spec[0])


see_through(_interpret.__code__, _part_name)


@dataclass(frozen=True, slots=True)
class Flow:
    """A generated workflow: run ``workflow`` with ``message``; once nothing fails it returns ``expected``."""

    message: Spec
    workflow: Any = generated_flow

    @property
    def expected(self) -> Any:
        """What the plain model says; a race is ``("one of", results)``."""
        return expected(self.message)


def draw_flow(**options: Any) -> Flow:
    """Return a workflow drawn from the choices of the execution that runs now; options: of ``generate``."""
    loop: Any = asyncio.get_running_loop()

    def choose(drawn: Sequence[str], name: str) -> int:
        return int(loop.choose("program", tuple(drawn), subject=name)) if len(drawn) > 1 else 0

    return Flow(generate(choose, **options))


async def run_generated(durable: Any, spec: Spec) -> None:
    """Run ``spec``, resume it until it is answered and does not fail, and compare with the model."""
    run = await durable.run(generated_flow, spec)
    for _ in range(4):
        if run.ending == "returned" and not run.requests:
            break
        answers = dict.fromkeys(run.requests, "answer") or None
        run = await durable.resume(run, responses=answers)
    model = expected(spec)
    assert run.outputs, f"{spec} ended without an output: {run.ending} {run.error!r}"
    assert agrees(run.outputs[0], model), f"{spec} returned {run.outputs[0]!r}, the model says {model!r}"
