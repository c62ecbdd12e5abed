"""Instructions and the expressions of the source that they come from.

Owns the parsed files; must not know what the expressions mean.
"""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType

# Line, last line, column and last column, in bytes, as in ``code.co_positions()``.
_Span = tuple[int | None, int | None, int | None, int | None]


def nodes_at(code: CodeType, instruction: int) -> list[ast.AST]:
    """Return the nodes of the source to which an instruction belongs."""
    return _nodes(code.co_filename).get(_spans(code)[instruction // 2], []) if instruction >= 0 else []


@functools.lru_cache(maxsize=512)
def _spans(code: CodeType) -> tuple[_Span, ...]:
    return tuple(code.co_positions())


@functools.lru_cache(maxsize=64)
def _tree(file: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@functools.lru_cache(maxsize=64)
def parents_in(file: str) -> dict[ast.AST, ast.AST]:
    """Return the parent of each node of a file; empty when its source cannot be had."""
    return {child: node for node in ast.walk(_tree(file)) for child in ast.iter_child_nodes(node)}


@functools.lru_cache(maxsize=64)
def _nodes(file: str) -> dict[_Span, list[ast.AST]]:
    found: dict[_Span, list[ast.AST]] = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, (ast.expr, ast.For)):
            span = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            found.setdefault(span, []).append(node)
    return found
