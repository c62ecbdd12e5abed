"""Source without the harness: points and sleeps become gates, and what else it offers its plain form.

Owns the edits of source text, so that what is kept looks as its author wrote it; must not know what is kept.
"""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.report.export.source import ExportError, Source, is_docstring

THREAD = "thread"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes from ``start`` to ``end`` of a file by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Plain:
    """Makes parts of one file plain.

    notes: function name to a statement that is put first in its body. docstrings: keep them. choices: what
    ``harness.shape`` chose, by its name. instead: what an expression is replaced by, or None.
    """

    source: Source
    notes: Mapping[str, str] = field(default_factory=dict)
    docstrings: bool = True
    choices: Mapping[str, str] = field(default_factory=dict)
    instead: Callable[[ast.expr], str | None] = lambda _: None

    def definition(self, name: str, *, renamed: str = "") -> str:
        """Return definition ``name``; with ``renamed`` under that name, and without its decorators.

        Raises ExportError for what has no plain form.
        """
        node = self.source.definitions[name]
        start, end = self.source.span(node)
        if not renamed:
            return self._text(node, self.source.lines_of(node)[0], end)
        return self._text(node, start, end).replace(f"def {name}(", f"def {renamed}(", 1)

    def body(self, function: ast.AsyncFunctionDef) -> list[str]:
        """Return the statements of ``function``, without its docstring, as text that begins at column 0."""
        kept = [node for node in function.body if not is_docstring(node)]
        texts = [self.statement(node, function.name) for node in kept]
        first = self.source.gap(function.body[0], kept[0]).lstrip("\n") if kept[:1] != function.body[:1] else ""
        gaps = [first, *(self.source.gap(one, other) for one, other in itertools.pairwise(kept))]
        return [f"{gap}{text}" for gap, text in zip(gaps, texts, strict=True)]

    def statement(self, node: ast.stmt, inside: str) -> str:
        """Return one statement as text that begins at column 0. inside: the function that it belongs to."""
        start, end = self.source.span(node)
        begin = self.source.lines_of(node)[0] + node.col_offset if getattr(node, "decorator_list", ()) else start
        text = " " * node.col_offset + self._text(node, begin, end, inside=inside)
        if any(isinstance(item, ast.Constant | ast.JoinedStr) and self._spans(item) for item in ast.walk(node)):
            raise ExportError(f"the text of several lines in line {node.lineno} would be moved to another column")
        return textwrap.dedent(text)

    def expression(self, node: ast.expr, inside: str = "") -> str:
        """Return one expression."""
        return self._text(node, *self.source.span(node), inside=inside)

    def _text(self, node: ast.AST, start: int, end: int, *, inside: str = "") -> str:
        edits = sorted(self._edits(node, inside or getattr(node, "name", "")), key=lambda edit: edit.start)
        parts, done = [], start
        for edit in edits:
            if edit.start < done:
                continue  # inside what was replaced already
            parts += [self.source.between(done, edit.start), edit.text]
            done = edit.end
        return "".join([*parts, self.source.between(done, max(done, end))])

    def _edits(self, node: ast.AST, inside: str) -> Iterable[Edit]:
        queue: list[tuple[ast.AST, str]] = [(node, inside)]
        while queue:
            item, inside = queue.pop()
            if isinstance(item, _FUNCTIONS):
                inside = item.name
                yield from self._first_lines(item)
            elif isinstance(item, ast.ClassDef) and not self.docstrings and len(item.body) > 1:
                yield from (self._without(first) for first in item.body[:1] if is_docstring(first))
            if isinstance(item, ast.ImportFrom) and (item.module or "").partition(".")[0] == "harness":
                yield self._without(item)  # what it imports stands in the file itself, if that can be
                continue
            if isinstance(item, ast.Expr) and self.source.means(item.value) == "effect":
                yield self._without(item)
                continue
            if isinstance(item, ast.expr):
                text = self._expression(item, inside)
                if text is not None:
                    yield Edit(*self.source.span(item), text)
                    continue
            queue += [(child, inside) for child in ast.iter_child_nodes(item)]

    def _expression(self, node: ast.expr, inside: str) -> str | None:
        """Return what ``node`` is replaced by, or None when it stays; raises ExportError when it can do neither."""
        text = self.instead(node)
        if text is not None:
            return text
        what = self.source.means(node)
        call = node if isinstance(node, ast.Call) else None
        if call is not None and what == "point":
            name = self.source.text(call.args[0]) if call.args else '"point"'
            return f"gate({name})"
        if call is None and what == "point":
            return "gate"  # passed to something that calls it
        if call is not None and what == "attempt":
            return "attempt"
        if call is not None and what == "shape" and isinstance(call.args[0], ast.Constant):
            options = self.source.literal(call.args[1]) or ("",)
            return f'"{self.choices.get(str(call.args[0].value), str(options[0]))}"'
        if what:
            raise ExportError(f"{self.source.text(node)} (line {node.lineno}) has no plain form")
        return None if call is None else self._wait(call, inside)

    def _wait(self, call: ast.Call, inside: str) -> str | None:
        name = self.source.full_name(call.func)
        if name == "asyncio.sleep" and call.args and not _is_zero(call.args[0]):
            return f'gate("{inside}")'
        if name == "asyncio.to_thread":
            return f"{THREAD}({self._listed(call.args)})"
        if name.endswith(".run_in_executor"):
            return f"asyncio.ensure_future({THREAD}({self._listed(call.args[1:])}))"
        return None

    def _listed(self, arguments: list[ast.expr]) -> str:
        return ", ".join(self.source.text(item) for item in arguments)

    def _first_lines(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterable[Edit]:
        first, note = function.body[0], self.notes.get(function.name, "")
        start, end = self.source.span(first)
        indent = " " * first.col_offset
        if not is_docstring(first):
            if note:
                yield Edit(start, start, f"{note}\n{indent}")
        elif not self.docstrings and (note or len(function.body) > 1):
            yield Edit(start, end, note) if note else self._without(first)
        elif note:
            yield Edit(end, end, f"\n{indent}{note}")

    def _spans(self, node: ast.Constant | ast.JoinedStr) -> bool:
        return node.end_lineno != node.lineno and any(quotes in self.source.text(node) for quotes in ('"""', "'''"))

    def _without(self, statement: ast.stmt) -> Edit:
        """Return the edit that removes a statement with its lines and the empty ones behind it."""
        return Edit(*self.source.lines_of(statement), "")


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
