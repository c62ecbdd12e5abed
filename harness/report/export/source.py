"""The source of a program, cut down to what one exported file needs.

Owns edits of source text by syntax tree, so that what is kept looks as its author wrote it; must not run it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.model.errors import UsageError

_PACKAGE = "harness"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class ExportError(UsageError):
    """A finding has no plain form; the message is the reason, one line."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes from ``start`` to ``end`` of a file by ``text``."""

    start: int
    end: int
    text: str


class Source:
    """One Python file whose definitions can be cut out and made plain."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._offsets = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))
        self.tree = ast.parse(text)
        self._aliases = _aliases(self.tree)
        self.definitions: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, _DEFINITIONS):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.definitions[node.targets[0].id] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.definitions[node.target.id] = node

    def text(self, node: ast.AST) -> str:
        """Return the source of ``node``."""
        start, end = self._span(node)
        return self._bytes[start:end].decode()

    def function_at(self, line: int) -> str:
        """Return the name of the innermost function around ``line``, or ""."""
        found = ""
        for node in ast.walk(self.tree):
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line
            if inside and line <= (node.end_lineno or 0):  # type: ignore[attr-defined]
                found = node.name  # type: ignore[attr-defined]  # walk goes from the outside in
        return found

    def needed(self, roots: Iterable[str]) -> list[str]:
        """Return the definitions that ``roots`` need, themselves included, in the order of the file."""
        wanted, queue = set[str](), list(roots)
        while queue:
            name = queue.pop()
            node = self.definitions.get(name)
            if node is None or name in wanted:
                continue
            wanted.add(name)
            queue += sorted(names_in(node))
        return [name for name in self.definitions if name in wanted]

    def calls(self, names: Iterable[str], what: str) -> bool:
        """Return whether the definitions ``names`` use ``harness.<what>``."""
        nodes = (node for name in names for node in ast.walk(self.definitions[name]))
        return any(self._means(node) == what for node in nodes if isinstance(node, ast.expr))

    def plain(self, name: str, *, notes: Mapping[str, str], docstrings: bool) -> str:
        """Return definition ``name`` without the harness.

        Points and sleeps become gates, attempts a variable, effects are left out. notes: function name to a
        statement that is put first in its body. Raises ExportError for anything else of the harness.
        """
        node = self.definitions[name]
        first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
        start = self._offsets[first - 1]
        end = self._span(node)[1]
        edits = sorted(self._edits(node, notes, docstrings=docstrings), key=lambda edit: edit.start, reverse=True)
        text = self._bytes[start:end]
        done = end + 1
        for edit in edits:
            if edit.end > done:
                continue  # inside what was replaced already
            text = text[: edit.start - start] + edit.text.encode() + text[edit.end - start :]
            done = edit.start
        return text.decode()

    def imports(self) -> list[tuple[str, str, str]]:
        """Return (module, name or "", name in the file) of each import that is not the harness's."""
        found = []
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                found += [(alias.name, "", alias.asname or alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found += [(node.module, alias.name, alias.asname or alias.name) for alias in node.names]
        return [item for item in found if item[0].partition(".")[0] not in (_PACKAGE, "__future__")]

    def _edits(self, node: ast.AST, notes: Mapping[str, str], *, docstrings: bool) -> Iterable[Edit]:
        function = getattr(node, "name", "")
        queue: list[tuple[ast.AST, str]] = [(node, function)]
        while queue:
            item, inside = queue.pop()
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = item.name
                yield from self._first_lines(item, notes.get(item.name, ""), docstrings=docstrings)
            elif (
                isinstance(item, ast.ClassDef) and not docstrings and len(item.body) > 1 and _is_docstring(item.body[0])
            ):
                yield self._without(item.body[0])
            if isinstance(item, ast.Expr) and self._means(item.value) == "effect":
                yield self._without(item)
                continue
            if isinstance(item, ast.Call):
                edit = self._call(item, inside)
                if edit is not None:
                    yield edit
                    continue
            elif isinstance(item, ast.expr) and self._means(item):
                raise ExportError(f"{self.text(item)} (line {item.lineno}) has no plain form")
            queue += [(child, inside) for child in ast.iter_child_nodes(item)]

    def _call(self, call: ast.Call, inside: str) -> Edit | None:
        what = self._means(call)
        start, end = self._span(call)
        if what == "point":
            argument = self.text(call.args[0]) if call.args else '"point"'
            return Edit(start, end, f"gate({argument})")
        if what == "attempt":
            return Edit(start, end, "attempt")
        if what:
            raise ExportError(f"{self.text(call)} (line {call.lineno}) has no plain form")
        if self.text(call.func) == "asyncio.sleep" and call.args and not _is_zero(call.args[0]):
            return Edit(start, end, f'gate("{inside}")')
        return None

    def _first_lines(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, note: str, *, docstrings: bool
    ) -> Iterable[Edit]:
        first = function.body[0]
        indent = " " * first.col_offset
        if not _is_docstring(first):
            if note:
                start = self._span(first)[0]
                yield Edit(start, start, f"{note}\n{indent}")
            return
        if not docstrings and (note or len(function.body) > 1):
            start, end = self._span(first)
            yield Edit(start, end, note) if note else self._without(first)
        elif note:
            end = self._span(first)[1]
            yield Edit(end, end, f"\n{indent}{note}")

    def _without(self, statement: ast.stmt) -> Edit:
        """Return the edit that removes a statement with its line and the empty ones behind it."""
        last = statement.end_lineno or statement.lineno
        while last + 1 < len(self._offsets) and not self._bytes[self._offsets[last] : self._offsets[last + 1]].strip():
            last += 1  # the empty lines behind it
        return Edit(self._offsets[statement.lineno - 1], self._offsets[last], "")

    def _means(self, node: ast.expr) -> str:
        """Return which name of the harness ``node`` calls or is, or ""."""
        if isinstance(node, ast.Call):
            node = node.func
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr if self._aliases.get(node.value.id) == "" else ""
        return self._aliases.get(node.id, "") if isinstance(node, ast.Name) else ""

    def _span(self, node: ast.AST) -> tuple[int, int]:
        item: ast.expr = node  # type: ignore[assignment]
        end_line, end_column = item.end_lineno or item.lineno, item.end_col_offset or 0
        return self._offsets[item.lineno - 1] + item.col_offset, self._offsets[end_line - 1] + end_column


def names_in(node: ast.AST) -> set[str]:
    """Return every name that ``node`` reads."""
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


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


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
