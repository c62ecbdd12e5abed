"""How a run ends, as statements around the call of the framework.

Owns the text of each ending; must not know what is judged, nor which statement of a program a run comes from.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass, field

from harness.report.export.gates import CANCEL
from harness.report.export.source import ExportError

CRASH = "crash"
AGAIN = "cancel again"
DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Ending:
    """How one run of the failing execution ended.

    how: of ``run.ended``; "" for one that never did. cancelled: how often it was cancelled from outside. late: whether
    a deadline passed. left: after how many events its consumer left the stream; None for one that was not streamed,
    0 for one that stayed.
    """

    number: int
    how: str
    error: str = ""
    cancelled: int = 0
    late: bool = False
    left: int | None = None
    last: bool = False


@dataclass(slots=True)
class Lines:
    """Statements for a test and for a script, with the helpers and imports that they need."""

    body: list[str] = field(default_factory=list)
    script: list[str] = field(default_factory=list)
    helpers: dict[str, None] = field(default_factory=dict)

    def add(self, *lines: str) -> None:
        """Add lines to both."""
        self.body += lines
        self.script += lines


_STAYS = """async def consume(stream):
    return [event async for event in stream]"""
_CLOSES = """async def close_after(stream, count):
    async for _ in stream:
        count -= 1
        if count == 0:
            break
    await stream.close()"""
_DROPS = """async def drop_after(stream, count):
    async for event in stream:
        count -= 1
        if count == 0:
            break
    event = stream = None
    gc.collect()  # the generator is finalized now"""


def write_ending(lines: Lines, ending: Ending, call: str, *, result: str = "", refused: str = "") -> None:
    """Add the statements that await ``call`` and see it end as it did.

    result: a name for what it returned. refused: what is said when it raises, which is the failure to be shown.
    Raises ExportError for an ending without a plain form.
    """
    call = _streamed(lines, ending, call)
    if ending.how == "crashed":
        lines.add(
            f"run = asyncio.ensure_future({call})",
            f'await finish(gate("{CRASH}"))',
            "storage = copy.deepcopy(storage)  # the process dies: what was written stays, and nothing else",
            "run.cancel()",
        )
        return
    if ending.cancelled:
        lines.add(f"run = asyncio.ensure_future({call})", _cancel(CANCEL))
        if ending.cancelled > 1:
            lines.add(_cancel(AGAIN))
        call = "run"
    if ending.late:
        expire = f'asyncio.ensure_future(gate("{DEADLINE}")).add_done_callback(lambda _: deadline.reschedule(0))'
        lines.add("async def in_time():", "    async with asyncio.timeout(None) as deadline:", f"        {expire}")
        lines.add(f"        return await {call}", "")
        call = "in_time()"
    if refused:
        _write_refused(lines, call, result, refused, _error(ending.error)[0])
    elif ending.how == "cancelled":
        _write_failure(lines, ending, call, "asyncio.CancelledError", "")
    elif ending.how == "timed out":
        _write_failure(lines, ending, call, "TimeoutError", "")
    elif ending.how == "failed":
        kind, match = _error(ending.error)
        if ending.last:
            lines.add("with contextlib.suppress(Exception):", f"    await finish({call})")
        else:
            _write_failure(lines, ending, call, kind, match)
    elif ending.how in ("returned", ""):
        lines.body.append(f"{result} = await finish({call})" if result else f"await finish({call})")
        lines.script.append(f"{result or 'result'} = await finish({call})")
        if ending.left is None:
            shown = f"{result or 'result'}.get_outputs()"
            lines.script.append(f"print('run {ending.number} returned', {shown})")
    elif ending.how in ("closed", "dropped"):
        lines.add(f"await finish({call})")
    else:
        raise ExportError(f"a run that ends {ending.how!r} has no plain form")


def _streamed(lines: Lines, ending: Ending, call: str) -> str:
    if ending.left is None:
        return call
    helper, count = {"closed": (_CLOSES, ending.left), "dropped": (_DROPS, ending.left)}.get(ending.how, (_STAYS, 0))
    lines.helpers[helper] = None
    call = call.replace("checkpoint_storage=", "stream=True, checkpoint_storage=", 1)
    name = helper.partition("(")[0].removeprefix("async def ")
    return f"{name}({call}, {count})" if count else f"{name}({call})"


def _cancel(gate: str) -> str:
    return f'asyncio.ensure_future(gate("{gate}")).add_done_callback(lambda _: run.cancel())'


def _write_failure(lines: Lines, ending: Ending, call: str, kind: str, match: str) -> None:
    lines.body += [f"with pytest.raises({kind}{match}):", f"    await finish({call})"]
    lines.script += [
        "try:",
        f"    await finish({call})",
        f"except {kind} as error:",
        f"    print('run {ending.number} ended with', repr(error))",
    ]


def _write_refused(lines: Lines, call: str, result: str, refused: str, kind: str) -> None:
    kept = f"{result} = " if result else ""
    # its traceback is left out: the failure is where it is asserted
    lines.body += ["refused = None", "try:", f"    {kept}await finish({call})", f"except {kind} as error:"]
    lines.body += ["    refused = error", f'assert refused is None, f"{refused}: {{refused}}"']
    lines.script += ["try:", f"    {kept}await finish({call})", f"except {kind} as error:"]
    lines.script.append(f'    raise SystemExit(f"BUG: {refused}: {{error}}") from error')


def _error(text: str) -> tuple[str, str]:
    """Return the class of an error's repr, and what ``pytest.raises`` should match."""
    name, _, rest = text.partition("(")
    if name == "StorageFault":
        return "RuntimeError", ', match="connection lost"'
    if not hasattr(builtins, name):
        return "Exception", ""
    try:
        message = ast.literal_eval(rest.removesuffix(")"))
    except (SyntaxError, ValueError):
        return name, ""
    plain = isinstance(message, str) and re.fullmatch(r"[\w ,:-]+", message)
    return name, f', match="{message}"' if plain else ""
