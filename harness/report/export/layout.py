"""The layout of an exported file: header, imports, gates, program, test.

Owns what stands where; must not know what a part says.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.report.export.gates import REST, Order, gate_functions
from harness.report.export.ops import CLOCK
from harness.report.export.plain import THREAD, Plain
from harness.report.export.source import ExportError, Source, import_lines, names_in

MAX_LINES = 60
_WIDTH = 118
_THREAD = f'''async def {THREAD}(function, *arguments):  # its work is done when its gate opens, awaited or not
    async def work():
        await gate("{THREAD}")
        return function(*arguments)

    return await asyncio.shield(asyncio.Task(work()))'''


@dataclass(frozen=True, slots=True)
class Draft:
    """What an adapter knows of a finding, as source.

    title: sentences. source, roots, nodes: the program, the definitions that it begins with, and other parts of it that
    need some. storage: a class, or "". body: the statements of the run and of the judgement, for a test and for a
    script. whole: ``finish`` runs all of them. arguments: fixtures of the test. notes: function name to a statement
    at its beginning. choices: of ``harness.shape``. renamed: definitions that get another name and no decorator.
    variables: module-level assignments. helpers: functions. gates: every gate of the storage. imports: what the parts
    use besides the program's own. ends: that it ends is what is asserted. why: what the order of the gates brings
    about. fails_with: how pytest may begin to say that it fails.
    """

    title: str
    source: Source
    roots: tuple[str, ...]
    test: str
    body: tuple[str, ...]
    script: tuple[str, ...]
    order: Order
    nodes: tuple[ast.AST, ...] = ()
    storage: str = ""
    whole: bool = False
    arguments: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    imports: tuple[tuple[str, str, str], ...] = ()
    ends: bool = False
    why: str = ""
    fails_with: tuple[str, ...] = ("AssertionError", "assert ", "BUG: ")


@dataclass(frozen=True, slots=True)
class Tested:
    """The function of a finding, as source. variable: its argument that runs workflows. namespace: of its module.

    storages: of its own, by name. setup: of its schedule. roots: definitions that it needs besides. arguments:
    fixtures. before: statements that come first. renamed: as of ``Draft``.
    """

    title: str
    source: Source
    function: ast.AsyncFunctionDef
    variable: str
    namespace: Mapping[str, Any]
    storages: Mapping[str, Any]
    setup: Mapping[str, str]
    roots: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


def lay_out(draft: Draft, order: Order, *, script: bool = False) -> str:
    """Return the file in which gates open as ``order`` says: with the docstrings of the program if they fit."""
    if script and draft.arguments:
        raise ExportError(f"a script has no fixture {draft.arguments[0]!r}: only a test has")
    made = [_lay_out(draft, order, script=script, docstrings=docstrings) for docstrings in (True, False)]
    return next((text for text in made if text.count("\n") <= MAX_LINES), made[-1])


def _lay_out(draft: Draft, order: Order, *, script: bool, docstrings: bool) -> str:
    source = draft.source
    kept = source.needed(draft.roots, draft.nodes)
    plainly = Plain(source, notes=draft.notes, docstrings=docstrings, choices=draft.choices)
    blocks = [plainly.definition(name, renamed=draft.renamed.get(name, "")) for name in kept]
    body = list(draft.script if script else draft.body)
    threads = any(f"{THREAD}(" in block for block in (*blocks, *body))
    helpers = [*draft.helpers, *([_THREAD] if threads else [])]
    if not threads and any(name.partition(" ")[0] == THREAD for name in order.names):
        raise ExportError("a thread is started by what the program imports: no gate can be put there")
    known, dynamic = _gates_in("\n\n".join([*helpers, *blocks, draft.storage, _in_function(body)]))
    order = order.with_others([*draft.gates, *(name for name in known if name != REST), *known])
    gated = bool(known or dynamic or order.names or draft.ends)
    plain = not (order.numbered or dynamic)
    body = _with_attempts(
        _with_clock(body, order), source, [*(source.definitions[name] for name in kept), *draft.nodes]
    )
    if not gated:
        body = [_without_finish(line) for line in body]
    functions = gate_functions(order, plain=plain, ends=draft.ends) if gated else []
    if gated and not known and not dynamic:
        functions = functions[-1:]  # nothing waits
    ends = _ends(draft, body, script=script, gated=gated)
    code = "\n\n\n".join([*functions, *helpers, *([draft.storage] if draft.storage else []), *blocks, *ends])
    if plain:
        code = re.sub(r'\bgate\(("[^"]+")\)', r"gates[\1].wait()", code)
    imports = [*source.imports(), ("asyncio", "", "asyncio"), ("pytest", "", "pytest"), *draft.imports]
    variables = _variables(draft, order, gated=gated, attempts="attempt" in names_in(ast.parse(code)))
    _check_names("\n".join([*variables, *functions, *helpers, draft.storage]), source, kept, draft.nodes)
    used = names_in(ast.parse(code))
    head = [_docstring(draft.title), source.future, import_lines(imports, used=used), "\n".join(variables)]
    return "\n\n".join(part for part in head if part) + "\n\n\n" + code + "\n"


def _variables(draft: Draft, order: Order, *, gated: bool, attempts: bool) -> list[str]:
    """Return the module-level assignments."""
    variables = [_gates_line(order, draft.why)] if gated else []
    if order.early:
        listed = ", ".join(f'"{name}": {count}' for name, count in order.early.items())
        variables.append(f"early = {{{listed}}}  # loop iterations after the gate before it")
    variables += draft.variables
    if gated and order.numbered:
        variables.append("reached = []")
    if attempts and "executed = []" in variables:
        variables[variables.index("executed = []")] = "executed, attempt = [], 0"
    elif attempts:
        variables.append("attempt = 0")
    return variables


def _ends(draft: Draft, body: Sequence[str], *, script: bool, gated: bool) -> list[str]:
    """Return what runs the program: the test, or the main function of a script."""
    statements = "\n".join(body)
    name = "run_and_resume" if "latest = " in statements and not script else "main"
    call = f"asyncio.run(finish({name}()))" if draft.whole and gated else f"asyncio.run({name}())"
    main = f"async def {name}():\n{_indented(statements)}"
    if script:
        return [main, f'if __name__ == "__main__":\n    {call}']
    return [f"def {draft.test}({', '.join(draft.arguments)}):\n{_indented(main)}\n\n    {call}"]


def _with_attempts(body: Sequence[str], source: Source, nodes: Sequence[ast.AST]) -> list[str]:
    """Return ``body`` with the number of the attempt if the program asks for it, and without it otherwise."""
    if not source.calls(nodes, "attempt"):
        return [line for line in body if not line.lstrip().startswith("attempt = ")]
    told = any(line.lstrip().startswith("attempt = ") for line in body)
    return ["global attempt", *body] if told else list(body)


def _with_clock(body: Sequence[str], order: Order) -> list[str]:
    """Return ``body`` with a clock that a gate moves, if one stands for the passing of time."""
    clocks = [name for name in order.names if name.partition(" ")[0] == CLOCK]
    if not clocks:
        return list(body)
    passed = " + ".join(f'gates["{name}"].is_set()' for name in clocks)
    passed = f"({passed})" if len(clocks) > 1 else passed
    return [f"asyncio.get_running_loop().time = lambda: 3600.0 * {passed}  # the clock moves with its gate", *body]


def _check_names(own: str, source: Source, kept: Sequence[str], nodes: Sequence[ast.AST]) -> None:
    """Raise ExportError when the program uses a name that the file needs for itself. own: the file's own part."""
    used = {*kept, *(local for _, _, local in source.imports())}
    for node in (*nodes, *(source.definitions[name] for name in kept)):
        for item in ast.walk(node):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                used.add(item.id)
            elif isinstance(item, ast.arg):
                used.add(item.arg)
    for name in Source(own).definitions:
        if name in used:
            raise ExportError(f"the program calls something {name!r}, which is a name of the exported file: rename it")


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")  # leaves empty lines empty


def _in_function(body: Sequence[str]) -> str:
    """Return statements as a function, so that they can be parsed whatever they await."""
    return "async def main():\n" + _indented("\n".join(body or ("pass",)))


def _gates_line(order: Order, why: str) -> str:
    """Return the statement that makes the gates, on several lines where one is too long."""
    listed = ", ".join(f'"{name}": asyncio.Event()' for name in order.names)
    comment = "  # they open in this order" if len(order.names) > 1 else ""
    for said in (f"  # in this order {why}" if why and comment else comment, comment):
        if len(listed) + len(said) + len("gates = {}") <= _WIDTH:
            return f"gates = {{{listed}}}{said}"
    names = ", ".join(f'"{name}"' for name in order.names)
    return f"ORDER = [{names}]\ngates = {{name: asyncio.Event() for name in ORDER}}{comment}"


def _without_finish(line: str) -> str:
    """Return ``line`` without the call of ``finish``: nothing waits at a gate."""
    before, found, after = line.partition("finish(")
    return f"{before}{after[::-1].replace(')', '', 1)[::-1]}" if found else line


def _gates_in(code: str) -> tuple[list[str], bool]:
    """Return the names of the gates in ``code``, and whether others are made up while it runs."""
    known: list[str] = []
    uses = 0
    for node in ast.walk(ast.parse(code)):
        uses += isinstance(node, ast.Name) and node.id == "gate"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "gate":
            known += [str(item.value) for item in node.args if isinstance(item, ast.Constant)]
    return sorted(set(known)), uses > len(known)


def _docstring(title: str) -> str:
    if len(title) <= _WIDTH - 4 and "\n" not in title:
        return f'"""{title}"""'
    first, _, rest = title.partition("\n")
    head = textwrap.wrap(first, _WIDTH - 2)
    return '"""' + "\n".join([*head, *([rest] if rest else [])]) + '\n"""'
