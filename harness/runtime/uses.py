"""What an expression does with the tasks of a set, read from its source: whose order matters, and is a set ever seen.

Owns the forms that are recognised; must not know who asks. What is not recognised, or has no source, counts as
depending on the order of every member.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import dis
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Literal

from harness.runtime.sources import nodes_at, parents_in

_CONTAINS = dis.opmap["CONTAINS_OP"]
_GET_ITER = dis.opmap["GET_ITER"]
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp
# A membership test of one of these has no effect.
_CONTAINERS = (list, tuple, set, frozenset, dict)
# What asks a task or a future if it has ended, and does no more.
_DONE = (asyncio.Task.done, asyncio.Future.done)


@dataclass(frozen=True, slots=True)
class _Use:
    """Which members the places of matter: all, those that have not ended, those that pass the tests, or none.

    name: of the loop's variable. asked: names of what the tests ask membership of.
    """

    kind: Literal["all", "live", "tested", "none"]
    name: str = ""
    tests: tuple[CodeType, ...] = ()
    asked: tuple[str, ...] = ()


_ALL = _Use("all")


def that_matter(frame: FrameType, members: Sequence[Any]) -> list[Any]:
    """Return those of ``members`` whose order decides what ``frame`` does with the iteration that it begins."""
    use = _use_at(frame.f_code, frame.f_lasti)
    space = frame.f_globals
    as_built = "any" not in space and "all" not in space and space.get("asyncio", asyncio) is asyncio
    if use.kind == "all" or not as_built or not all(type(member).done in _DONE for member in members):
        return list(members)
    if use.kind == "none":
        return []
    if use.kind == "live":
        return [member for member in members if not (isinstance(member, asyncio.Task) and member.done())]
    known = {**vars(builtins), **space, **frame.f_locals}
    if not all(type(known.get(name)) in _CONTAINERS for name in use.asked):
        return list(members)
    return [member for member in members if _passes(use, member, known)]


def _passes(use: _Use, member: Any, known: dict[str, Any]) -> bool:
    return all(eval(test, {**known, use.name: member}) for test in use.tests)


def only_asks(frame: FrameType) -> bool:
    """Return whether ``frame`` asks if something is in a container, which puts nothing into it."""
    return _only_asks_at(frame.f_code, frame.f_lasti)


def drops_result(frame: FrameType) -> bool:
    """Return whether ``frame`` awaits in a statement of its own, so that nobody sees what comes back."""
    return _drops_at(frame.f_code, frame.f_lasti)


def only_waits(frame: FrameType) -> bool:
    """Return whether ``frame`` makes the set of ``await asyncio.wait({...})``, a statement of its own.

    Only ``asyncio.wait`` sees that set, and copies it.
    """
    return frame.f_globals.get("asyncio") is asyncio and _only_waits_at(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=4096)
def _use_at(code: CodeType, instruction: int) -> _Use:
    own_names = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
    # What C code iterates on behalf of a call, such as ``islice(tasks, 1)``, is not what the loop runs over.
    if own_names & {"any", "all", "asyncio"} or code.co_code[instruction] != _GET_ITER:
        return _ALL
    parents = parents_in(code.co_filename)
    for node in nodes_at(code, instruction):
        # Up to Python 3.12 the instruction has the place of the whole loop, since then that of what it runs over.
        loop = node if isinstance(node, (ast.For, _Comprehension)) else parents.get(node)
        loop = parents.get(loop) if isinstance(loop, ast.comprehension) else loop
        if isinstance(loop, ast.For) and node in (loop, loop.iter):
            return _use_in_statement(loop, parents)
        if isinstance(loop, _Comprehension) and len(loop.generators) == 1 and node in (loop, loop.generators[0].iter):
            return _use_in_comprehension(loop, parents)
    return _ALL


def _use_in_statement(loop: ast.For, parents: dict[ast.AST, ast.AST]) -> _Use:
    """``for task in tasks:`` with nothing but ``if not task.done(): ...`` in it, and no ``task`` outside of it."""
    if not isinstance(loop.target, ast.Name) or loop.orelse or len(loop.body) != 1:
        return _ALL
    (only,) = loop.body
    if not isinstance(only, ast.If) or only.orelse or not _skips_ended([only.test], loop.target.id):
        return _ALL
    inside = list(ast.walk(loop))
    others = [node for node in _names_beside(loop, loop.target.id, parents) if node not in inside]
    return _ALL if others else _Use("live")


def _names_beside(node: ast.AST, name: str, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    """Return where else ``name`` is said in the function of ``node``; the file stands for it outside of functions."""
    space = node
    while space in parents and not isinstance(space, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        space = parents[space]
    found: list[ast.AST] = [inner for inner in ast.walk(space) if isinstance(inner, ast.Name) and inner.id == name]
    return found + [inner for inner in ast.walk(space) if isinstance(inner, (ast.Global, ast.Nonlocal))]


def _use_in_comprehension(loop: Any, parents: dict[ast.AST, ast.AST]) -> _Use:
    (generator,) = loop.generators
    parent = parents.get(loop)
    if not isinstance(generator.target, ast.Name) or generator.is_async:
        return _ALL
    name = generator.target.id
    asked: list[str] = []
    if isinstance(loop, ast.GeneratorExp):
        is_judged = isinstance(parent, ast.Call) and ast.unparse(parent.func) in ("any", "all")
        is_pure = all(_is_pure(part, name, asked) for part in (loop.elt, *generator.ifs))
        return _Use("none") if is_judged and is_pure and not asked else _ALL
    if isinstance(loop.elt, ast.Name) and all(_is_pure(test, name, asked) for test in generator.ifs):
        if not asked and _is_only_gathered(loop, parents):
            return _Use("live")
        tests = tuple(compile(ast.Expression(test), "<test>", "eval") for test in generator.ifs)
        return _Use("tested", name, tests, tuple(asked)) if tests else _ALL
    return _Use("live") if _skips_ended(generator.ifs, name) else _ALL


def _skips_ended(tests: list[ast.expr], name: str) -> bool:
    """Return whether ``not name.done()`` is asked, and nothing before it that has an effect."""
    for test in tests:
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for part in parts:
            if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) and _asks(part.operand, name, ("done",)):
                return True
            if not _is_pure(part, name, []):
                return False
    return False


def _asks(node: ast.expr, name: str, methods: tuple[str, ...]) -> bool:
    """Return whether ``node`` calls one of ``methods`` of the loop's variable, without arguments."""
    return isinstance(node, ast.Call) and ast.unparse(node) in [f"{name}.{method}()" for method in methods]


def _is_pure(node: ast.expr, name: str, asked: list[str]) -> bool:
    """Return whether evaluating ``node`` does nothing but look: names, identity, and/or/not, ``done``, ``cancelled``.

    Membership too, if the container is of a plain type: its name is added to ``asked``.
    """
    if isinstance(node, (ast.Name, ast.Constant)):
        return True
    if isinstance(node, ast.BoolOp):
        return all(_is_pure(value, name, asked) for value in node.values)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _is_pure(node.operand, name, asked)
    if not isinstance(node, ast.Compare):
        return _asks(node, name, ("done", "cancelled"))
    for operator, part in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(part, ast.Name) and part.id != name:
            asked.append(part.id)
        elif not isinstance(operator, (ast.Is, ast.IsNot)) or not _is_pure(part, name, asked):
            return False
    return _is_pure(node.left, name, asked)


def _is_only_gathered(loop: ast.expr, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether ``loop`` makes a local list that is only tested, and gathered with its results dropped.

    ``gather`` cancels its children in their order, if they have not ended, and does the same to each otherwise.
    """
    assign = parents.get(loop)
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1 or not isinstance(assign.targets[0], ast.Name):
        return False
    for node in _names_beside(assign, assign.targets[0].id, parents):
        parent = parents[node]
        is_tested = isinstance(parent, (ast.If, ast.While)) and node is parent.test
        if node is not assign.targets[0] and not is_tested and not _gathers(parent, parents):
            return False
    return True


def _gathers(starred: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether ``starred`` is in the statement ``await asyncio.gather(*..., return_exceptions=True)``."""
    call = parents.get(starred)
    if not isinstance(starred, ast.Starred) or not isinstance(call, ast.Call) or not _is_dropped(call, parents):
        return False
    options = [(option.arg, ast.unparse(option.value)) for option in call.keywords]
    return ast.unparse(call.func) == "asyncio.gather" and options == [("return_exceptions", "True")]


def _is_dropped(call: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    awaiting = parents.get(call)
    return isinstance(awaiting, ast.Await) and isinstance(parents.get(awaiting), ast.Expr)


@functools.lru_cache(maxsize=4096)
def _only_asks_at(code: CodeType, instruction: int) -> bool:
    return code.co_code[instruction] == _CONTAINS


@functools.lru_cache(maxsize=4096)
def _drops_at(code: CodeType, instruction: int) -> bool:
    parents = parents_in(code.co_filename)
    found = nodes_at(code, instruction)
    return any(isinstance(node, ast.Await) and isinstance(parents.get(node), ast.Expr) for node in found)


@functools.lru_cache(maxsize=4096)
def _only_waits_at(code: CodeType, instruction: int) -> bool:
    parents = parents_in(code.co_filename)
    for node in nodes_at(code, instruction):
        call = parents.get(node)
        if isinstance(node, ast.Set) and isinstance(call, ast.Call) and node in call.args:
            return ast.unparse(call.func) == "asyncio.wait" and _is_dropped(call, parents)
    return False
