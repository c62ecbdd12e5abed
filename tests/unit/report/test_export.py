"""Cutting a program down to an exported file, and the order of its gates."""

import ast
from dataclasses import replace

import pytest

from harness.report.export.gates import CANCEL, EVENT, Order, order_of
from harness.report.export.layout import MAX_LINES, Draft, lay_out
from harness.report.export.plain import Plain
from harness.report.export.probe import Probe, probe
from harness.report.export.source import ExportError, Source, import_lines

PROGRAM = '''"""A program."""

import asyncio
import re as regex

from elsewhere import step

import harness
from harness import point

LIMIT = 3
UNUSED = 4


class Helper:
    """A class with a docstring and an empty line."""

    size = LIMIT


@step
async def work(order: int) -> str:  # größe
    """Work."""
    await harness.point("call")  # kept comment
    harness.effect("mail")
    if harness.attempt() == 0:
        raise RuntimeError("away")
    await asyncio.sleep(0.5)
    await asyncio.sleep(0)
    await point(f"item {order}")
    return Helper().size


async def unused() -> None:
    work(1)
'''


def test_only_what_is_needed_is_kept():
    """Definitions that a root reaches, in the order of the file."""
    assert Source(PROGRAM).needed(["work"]) == ["LIMIT", "Helper", "work"]


def test_a_function_becomes_plain_and_keeps_its_looks():
    """Points and sleeps are gates, attempts a variable, effects are gone; the rest is as it was written."""
    assert Plain(Source(PROGRAM), notes={"work": 'executed.append("work")'}).definition("work") == (
        "@step\n"
        "async def work(order: int) -> str:  # größe\n"
        '    """Work."""\n'
        '    executed.append("work")\n'
        '    await gate("call")  # kept comment\n'
        "    if attempt == 0:\n"
        '        raise RuntimeError("away")\n'
        '    await gate("work")\n'
        "    await asyncio.sleep(0)\n"
        '    await gate(f"item {order}")\n'
        "    return Helper().size"
    )


def test_docstrings_can_be_left_out():
    """With the empty lines behind them; the note takes the place of one."""
    plain = Plain(Source(PROGRAM), notes={"work": "note()"}, docstrings=False)
    assert plain.definition("Helper") == "class Helper:\n    size = LIMIT"
    lines = plain.definition("work").splitlines()
    assert lines[2:4] == ["    note()", '    await gate("call")  # kept comment']


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('harness.fault("disk")', 'harness.fault("disk") (line 5) has no plain form'),
        ("harness.Rung.EXACT", "harness.Rung (line 5) has no plain form"),
    ],
)
def test_anything_else_of_the_harness_is_refused(call, message):
    """Rather than guessed."""
    text = f"import harness\n\n\nasync def work():\n    return {call}\n"
    with pytest.raises(ExportError) as raised:
        Plain(Source(text)).definition("work")
    assert message in str(raised.value)


def test_imports_are_those_that_are_used():
    """The standard library first."""
    found = [*Source(PROGRAM).imports(), ("pytest", "", "pytest"), ("a.b", "c", "d")]
    assert import_lines(found, used={"regex", "asyncio", "step", "d"}) == (
        "import asyncio\nimport re as regex\n\nfrom a.b import c as d\nfrom elsewhere import step"
    )


PARKED = [("done/save", "save"), ("flaky/call", "call"), ("flaky/save", "save"), ("job.done", "")]


@pytest.mark.parametrize(
    ("delivered", "order"),
    [
        (["flaky/call"], Order(("call", "save"))),
        (["done/save", "flaky/call"], Order(("save 1", "call 1", "save 2"), numbered=True)),
        (["flaky/save", "flaky/call"], Order(("save 2", "call 1", "save 1"), numbered=True)),
        (["done/save", "flaky/save", "job.done"], Order(("save", "call"))),
        ([EVENT + CANCEL, "flaky/call"], Order((CANCEL, "call", "save"))),
        ([], Order(("save 1", "call 1", "save 2"), numbered=True)),
    ],
)
def test_gates_open_as_ops_arrived(delivered, order):
    """What did not arrive comes last; names carry numbers only where names are not enough."""
    assert order_of(PARKED, delivered) == order


def draft(**more):
    """Return a draft of the program above."""
    return Draft(
        title="issue 1: a promise holds.",
        source=Source(PROGRAM.replace('    await point(f"item {order}")\n', "")),
        roots=("work",),
        storage="",
        test="test_a_promise_holds",
        body=("await finish(work(7))", "assert False"),
        script=("await finish(work(7))", "print('done')"),
        order=Order(("work",)),
        **more,
    )


def test_a_test_file_is_laid_out():
    """Every gate of the program has a place in the order, first what the order says."""
    text = lay_out(draft(), draft().order)
    tree = ast.parse(text)
    assert ast.get_docstring(tree) == "issue 1: a promise holds."
    assert 'gates = {"work": asyncio.Event(), "call": asyncio.Event()}' in text
    assert 'await gates["call"].wait()' in text
    assert text.endswith("    asyncio.run(main())\n")
    assert text.count("\n") <= MAX_LINES


def test_numbered_gates_are_counted_when_they_are_reached():
    """One function for all, since an event can be met once only."""
    text = lay_out(draft(), Order(("work 2", "work 1"), numbered=True))
    assert 'gates = {"work 2": asyncio.Event(), "work 1": asyncio.Event()}' in text
    assert 'await gate("work")' in text
    assert "reached = []" in text


def test_a_script_has_a_main():
    """And no test."""
    text = lay_out(draft(), draft().order, script=True)
    assert "pytest" not in text
    assert text.endswith('if __name__ == "__main__":\n    asyncio.run(main())\n')


def test_names_of_the_file_are_not_taken_from_the_program():
    """Neither would be what it was."""
    text = PROGRAM.replace("LIMIT", "gates").replace('    await point(f"item {order}")\n', "")
    with pytest.raises(ExportError, match="calls something 'gates'"):
        lay_out(replace(draft(), source=Source(text)), Order(("call",)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_it():\n    assert 1 == 2, 'broken'\n", Probe(True, "AssertionError: broken")),
        ("def test_it():\n    pass\n", Probe(False, "it passes there", passes=True)),
        ("def test_it():\n    {}['a']\n", Probe(False, "it ends in another way: KeyError: 'a'")),
        ("import nowhere\n", Probe(False, "it ends in another way: ModuleNotFoundError: No module named 'nowhere'")),
    ],
)
def test_a_probe_tells_an_assertion_from_anything_else(text, expected):
    """A file that fails for another reason shows nothing."""
    assert probe(text) == expected
