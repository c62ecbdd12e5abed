"""The source of a program: its definitions, what each of them needs, and its imports.

Owns the reading of one file by syntax tree; must not change what it reads, nor run it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable

from harness.model.errors import UsageError

_PACKAGE = "harness"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


class ExportError(UsageError):
    """A finding has no plain form; the message is the reason, one line."""


class Source:
    """One Python file whose definitions can be cut out.

    more: the text of other files that belong to it, such as a ``conftest.py``. Their lines come behind its own.
    """

    def __init__(self, text: str, *more: str) -> None:
        parts = [part if part.endswith("\n") else f"{part}\n" for part in (text, *more)]
        self.firsts = [sum(part.count("\n") for part in parts[:index]) for index in range(len(parts))]
        self._bytes = "".join(parts).encode()
        self._offsets = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))
        self.tree = ast.parse(self._bytes)
        self._aliases = _aliases(self.tree)
        self.definitions: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, _DEFINITIONS):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign):
                names = (item for target in node.targets for item in ast.walk(target))
                self.definitions.update({item.id: node for item in names if isinstance(item, ast.Name)})
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.definitions[node.target.id] = node

    def text(self, node: ast.AST) -> str:
        """Return the source of ``node``."""
        return self.between(*self.span(node))

    def between(self, start: int, end: int) -> str:
        """Return the source from byte ``start`` to byte ``end``."""
        return self._bytes[start:end].decode()

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the first byte of ``node``, without its decorators, and the one behind it."""
        item: ast.expr = node  # type: ignore[assignment]
        end_line, end_column = item.end_lineno or item.lineno, item.end_col_offset or 0
        return self._offsets[item.lineno - 1] + item.col_offset, self._offsets[end_line - 1] + end_column

    def lines_of(self, statement: ast.stmt) -> tuple[int, int]:
        """Return the first byte of the first line of a statement, and the one behind it and the empty lines after."""
        last = statement.end_lineno or statement.lineno
        while last + 1 < len(self._offsets) and not self._bytes[self._offsets[last] : self._offsets[last + 1]].strip():
            last += 1
        return self._offsets[first_line(statement) - 1], self._offsets[last]

    def gap(self, one: ast.stmt, other: ast.stmt) -> str:
        """Return the comments and the empty line between two statements of one body, at column 0."""
        between = self.between(self._offsets[one.end_lineno or one.lineno], self.lines_of(other)[0])
        lines = [line.strip() for line in between.splitlines()]
        kept = [line for index, line in enumerate(lines) if line or index == 0 or lines[index - 1]]
        return "".join(f"{line}\n" for line in kept)

    def function_at(self, line: int) -> str:
        """Return the name of the innermost function around ``line``, or ""."""
        found = ""
        for node in ast.walk(self.tree):
            if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0):
                found = node.name  # walk goes from the outside in
        return found

    def function(self, name: str, line: int) -> ast.AsyncFunctionDef:
        """Return the async function ``name`` that begins at ``line``, decorators included; raises ExportError."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.AsyncFunctionDef) and node.name == name and first_line(node) == line:
                return node
        raise ExportError(f"{name!r} was not found in its file")

    def needed(self, roots: Iterable[str], nodes: Iterable[ast.AST] = ()) -> list[str]:
        """Return the definitions that ``roots`` and ``nodes`` need, roots included, in the order of the file."""
        wanted, queue = set[str](), [*roots, *(name for node in nodes for name in sorted(names_in(node)))]
        while queue:
            name = queue.pop()
            node = self.definitions.get(name)
            if node is None or name in wanted:
                continue
            wanted.add(name)
            queue += sorted(names_in(node))
        return [name for name in self.definitions if name in wanted]

    def calls(self, nodes: Iterable[ast.AST], what: str) -> bool:
        """Return whether ``nodes`` use ``harness.<what>``."""
        found = (item for node in nodes for item in ast.walk(node))
        return any(self.means(item) == what for item in found if isinstance(item, ast.expr))

    def means(self, node: ast.expr) -> str:
        """Return which name of the harness ``node`` calls or is, or ""."""
        if isinstance(node, ast.Call):
            node = node.func
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr if self._aliases.get(node.value.id) == "" else ""
        return self._aliases.get(node.id, "") if isinstance(node, ast.Name) else ""

    def imports(self) -> list[tuple[str, str, str]]:
        """Return (module, name or "", name in the file) of each import that is not the harness's.

        Raises ExportError for a relative one, which means nothing elsewhere.
        """
        found = []
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                found += [(alias.name, "", alias.asname or alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    raise ExportError(f"{self.text(node)} (line {node.lineno}) means nothing in another file")
                found += [(node.module or "", alias.name, alias.asname or alias.name) for alias in node.names]
        return [item for item in found if item[0].partition(".")[0] not in (_PACKAGE, "__future__")]

    def literal(self, node: ast.expr) -> tuple[object, ...] | None:
        """Return the values of a tuple or a list, or of a name for one; None for anything else."""
        if isinstance(node, ast.Name):
            node = getattr(self.definitions.get(node.id), "value", node)
        try:
            return tuple(ast.literal_eval(node))
        except (ValueError, TypeError):
            return None

    @property
    def future(self) -> str:
        """The line that switches on what is to come in the language, or ""."""
        found = (node for node in self.tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__")
        return next((self.text(node) for node in found), "")

    def full_name(self, node: ast.expr) -> str:
        """Return what ``node`` is called in the module that it comes from, such as ``asyncio.sleep``."""
        text = self.text(node)
        first, dot, rest = text.partition(".")
        for module, name, local in self.imports():
            if local == first:
                return f"{module}.{name}{dot}{rest}" if name else f"{module}{dot}{rest}"
        return text


def first_line(node: ast.stmt) -> int:
    """Return the line at which a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(item.lineno for item in decorators)])


def names_in(node: ast.AST) -> set[str]:
    """Return every name that ``node`` uses."""
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is nothing but a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def import_lines(imports: Iterable[tuple[str, str, str]], *, used: set[str]) -> str:
    """Return the import statements for ``used`` names, the standard library's first, as isort would."""
    plain: dict[bool, set[str]] = {True: set(), False: set()}
    named: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
    for module, name, local in imports:
        if local.partition(".")[0] not in used:
            continue
        ours = module.partition(".")[0] in sys.stdlib_module_names
        if not name:
            plain[ours].add(f"import {module}" + (f" as {local}" if local != module else ""))
        else:
            named[ours].setdefault(module, set()).add(name + (f" as {local}" if local != name else ""))
    groups = []
    for ours in (True, False):
        lines = sorted(plain[ours])
        lines += [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(named[ours].items())]
        groups.append("\n".join(lines))
    return "\n\n".join(group for group in groups if group)


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return local name to name in the harness; "" for the package itself."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == _PACKAGE:
                    found[alias.asname or _PACKAGE] = ""
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == _PACKAGE:
            found.update({alias.asname or alias.name: alias.name for alias in node.names})
    return found
