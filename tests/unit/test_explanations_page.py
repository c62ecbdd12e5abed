"""``harness catalogue --explain``: one row per known bug, and the reason where there is no export."""

import subprocess
import sys

import pytest

from harness.commands.explanations import Row, page, rows_in

BUG = '''"""A made-up bug."""

from agent_framework import step, workflow

import harness


@step
async def charge(order: int) -> str:
    return f"charged order {order}"


@workflow
async def order_flow(order: int) -> str:
    return await charge(order)


@harness.scenario("bug", storages=["memory"], affected=">=1.20", oracles=(), shapes=False)
async def bug(durable):
    """An order is shipped."""
    run = await durable.run(order_flow, 7)
    assert run.outputs == ["shipped order 7"]
'''


def written(text, folder):
    """Write a page and return its file."""
    (folder / "page.md").write_text(text)
    return folder / "page.md"


def test_a_page_is_one_table(tmp_path):
    """What would end a cell is escaped, and read again as it was."""
    row = Row("bug", "1.23.0, memory", "exact", "1", "0: `default order`", "`a|b` before `c`", "30 lines")
    text = page([row])
    assert text.startswith("# Explanations\n")
    assert text.endswith("| bug | 1.23.0, memory | exact | 1 | 0: `default order` | `a\\|b` before `c` | 30 lines |\n")
    assert rows_in(written(text, tmp_path)) == {"bug": row}
    assert len({line.count("|") for line in text.replace("\\|", "").splitlines() if line.startswith("|")}) == 1


@pytest.mark.slow
def test_a_known_bug_is_explained_and_exported(tmp_path):
    """Its row says whether the stock loop shows it; nothing but the page is written."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "bug.py").write_text(BUG)
    done = subprocess.run(
        [sys.executable, "-m", "harness", "catalogue", "--explain", "--cache", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (
        0,
        "docs/explanations.md: 1 known bugs, 1 of them shown by an export on the stock loop\n",
    )
    (row,) = [line for line in (tmp_path / "docs" / "explanations.md").read_text().splitlines() if "| bug |" in line]
    assert "| 0: `default order` | none: every execution that was looked at fails |" in row
    assert row.endswith(" lines; fails on the stock loop |")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs", "scenarios"]
