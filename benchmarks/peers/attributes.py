"""Load a module with its nonlocal variables turned into attributes of an object.

Owns the rewriting; must not know a tool. frontrun takes each function's variables for its own, also those that two
functions share through a closure, and would not see that they conflict; attributes it sees.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

SHARED = "shared"


def load_with_attributes(name: str, path: Path) -> ModuleType:
    """Return the module ``name`` made from the rewritten source at ``path``, and let it be imported by that name."""
    tree = ast.fix_missing_locations(_Rewriter().visit(ast.parse(path.read_text(encoding="utf-8"))))
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


class _Rewriter(ast.NodeTransformer):
    """Rewrite each function that owns what functions inside it declare nonlocal."""

    def __init__(self) -> None:
        self.shared: frozenset[str] = frozenset()

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer = self.shared
        inside = {name for child in ast.walk(node) if isinstance(child, ast.Nonlocal) for name in child.names}
        declared = {name for child in node.body if isinstance(child, ast.Nonlocal) for name in child.names}
        own = (inside & _assigned_here(node)) - declared
        self.shared = outer | own
        self.generic_visit(node)
        node.body = [child for child in node.body if not isinstance(child, ast.Nonlocal)] or [ast.Pass()]
        if own:
            make = f"{SHARED} = __import__('types').SimpleNamespace()"
            node.body.insert(0, ast.parse(make).body[0])
        self.shared = outer
        return node

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.shared:
            return node
        return ast.Attribute(ast.Name(SHARED, ast.Load()), node.id, node.ctx)


def _assigned_here(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names that a function itself assigns, not those that functions inside it assign."""
    names: set[str] = set()
    todo: list[ast.AST] = list(node.body)
    while todo:
        child = todo.pop()
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            names.add(child.id)
        todo.extend(ast.iter_child_nodes(child))
    return names
