"""The layout of an exported file: header, imports, gates, program, test.

Owns what stands where; must not know what a part says.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.report.export.gates import CANCEL, Order, gate_functions
from harness.report.export.source import ExportError, Source, import_lines, names_in

MAX_LINES = 60
_WIDTH = 118
OWN_NAMES = ("attempt", "executed", "finish", "gate", "gates", "reached", "Storage")


@dataclass(frozen=True, slots=True)
class Draft:
    """What an adapter knows of a finding, as source.

    title: one sentence. source, roots: the program, and the definitions that it begins with. storage: a class, or
    "". body: the statements of the run and of the judgement, for a test and for a script. notes: function name to a
    statement at its beginning. variables: module-level assignments. gates: every gate of the storage. imports: what
    the parts use besides the program's own.
    """

    title: str
    source: Source
    roots: tuple[str, ...]
    storage: str
    test: str
    body: tuple[str, ...]
    script: tuple[str, ...]
    order: Order
    gates: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    imports: tuple[tuple[str, str, str], ...] = ()


def lay_out(draft: Draft, order: Order, *, script: bool = False) -> str:
    """Return the file in which gates open as ``order`` says: with the docstrings of the program if they fit."""
    made = [_lay_out(draft, order, script=script, docstrings=docstrings) for docstrings in (True, False)]
    return next((text for text in made if text.count("\n") <= MAX_LINES), made[-1])


def _lay_out(draft: Draft, order: Order, *, script: bool, docstrings: bool) -> str:
    source = draft.source
    kept = source.needed(draft.roots)
    _check_names(source, kept)
    blocks = [source.plain(name, notes=draft.notes, docstrings=docstrings) for name in kept]
    uses_attempt = source.calls(kept, "attempt")
    known, dynamic = _gates_in("\n\n".join([*blocks, draft.storage]))
    order = order.with_others([*known, *draft.gates])
    gated = bool(known or dynamic or CANCEL in order.names)
    variables = list(draft.variables)
    plain = not (order.numbered or dynamic)
    if gated:
        variables.insert(0, _gates_line(order))
        if order.numbered:
            variables.append("reached = []")
    if uses_attempt and variables[-1:] == ["executed = []"]:
        variables[-1] = "executed, attempt = [], 0"
    elif uses_attempt:
        variables.append("attempt = 0")
    functions = gate_functions(order, plain=plain) if gated else []
    body = list(draft.script if script else draft.body)
    if uses_attempt and any(line.lstrip().startswith("attempt = ") for line in body):
        body.insert(0, "global attempt")
    else:
        body = [line for line in body if not line.lstrip().startswith("attempt = ")]
    if not gated:
        body = [_without_finish(line) for line in body]
    statements = "\n".join(body)
    if script:
        ends = [f"async def main():\n{_indented(statements)}", 'if __name__ == "__main__":\n    asyncio.run(main())']
    else:
        name = "run_and_resume" if "latest = " in statements else "main"
        inner = f"async def {name}():\n{_indented(statements)}\n\nasyncio.run({name}())"
        ends = [f"def {draft.test}():\n{_indented(inner)}"]
    parts = [*functions, *([draft.storage] if draft.storage else []), *blocks, *ends]
    code = "\n\n\n".join(parts)
    if plain:
        code = re.sub(r'\bgate\(("[^"]+")\)', r"gates[\1].wait()", code)
    imports = [*source.imports(), ("asyncio", "", "asyncio"), ("pytest", "", "pytest"), *draft.imports]
    used = names_in(ast.parse(code))
    head = [_docstring(draft.title), import_lines(imports, used=used), "\n".join(variables)]
    return "\n\n".join(part for part in head if part) + "\n\n\n" + code + "\n"


def _check_names(source: Source, kept: Sequence[str]) -> None:
    """Raise ExportError when the program uses a name that the file needs for itself."""
    used = {*kept, *(local for _, _, local in source.imports())}
    for name in OWN_NAMES:
        if name in used:
            raise ExportError(f"the program calls something {name!r}, which is a name of the exported file: rename it")


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def _gates_line(order: Order) -> str:
    """Return the statement that makes the gates, on several lines where one is too long."""
    listed = ", ".join(f'"{name}": asyncio.Event()' for name in order.names)
    comment = "  # they open in this order"
    if len(listed) + len(comment) + len("gates = {}") <= _WIDTH:
        return f"gates = {{{listed}}}{comment}"
    names = ", ".join(f'"{name}"' for name in order.names)
    return f"ORDER = [{names}]\ngates = {{name: asyncio.Event() for name in ORDER}}{comment}"


def _without_finish(line: str) -> str:
    """Return ``line`` without the call of ``finish``: nothing waits at a gate."""
    before, found, after = line.partition("finish(")
    return f"{before}{after[::-1].replace(')', '', 1)[::-1]}" if found else line


def _gates_in(code: str) -> tuple[list[str], bool]:
    """Return the names of the gates in ``code``, and whether others are made up while it runs."""
    known: list[str] = []
    dynamic = False
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "gate":
            if isinstance(node.args[0], ast.Constant):
                known.append(str(node.args[0].value))
            else:
                dynamic = True
    return sorted(set(known)), dynamic


def _docstring(title: str) -> str:
    if len(title) <= _WIDTH - 4:
        return f'"""{title}"""'
    return '"""' + "\n".join(textwrap.wrap(title, _WIDTH - 2)) + '\n"""'
