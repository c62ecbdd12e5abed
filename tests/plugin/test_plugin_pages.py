"""``--interleave-html``: a page per test that fails."""

import pytest

TEST = """
    import asyncio
    import pytest
    import harness

    @pytest.mark.interleave
    async def test_transfer():
        balance = [100]

        async def withdraw(amount):
            before = balance[0]
            await harness.point("database")
            balance[0] = before - amount

        await asyncio.gather(withdraw(10), withdraw(20))
        assert balance == [70]

    @pytest.mark.interleave
    async def test_that_passes():
        await asyncio.sleep(1)
"""


@pytest.mark.slow
def test_a_failing_test_has_a_page_and_says_where(pytester):
    """In the folder that was asked for; a test that passes has none."""
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess("-q", "-o", "asyncio_mode=strict", "--interleave-html", "pages/new")
    name = "test_a_failing_test_has_a_page_and_says_where.py-test_transfer.html"
    result.stdout.fnmatch_lines([f"*page: pages/new/{name}"])
    assert [file.name for file in (pytester.path / "pages" / "new").iterdir()] == [name]
    page = (pytester.path / "pages" / "new" / name).read_text(encoding="utf-8")
    assert "withdraw#2" in page
    assert "balance[0] = before - amount" in page


@pytest.mark.slow
def test_a_replayed_schedule_has_a_page_too(pytester):
    """Also when it was given in words."""
    file = pytester.makepyfile(TEST)
    given = ("--interleave-replay", "default order", "--interleave-html", str(pytester.path / "pages"))
    result = pytester.runpytest_subprocess("-q", "-o", "asyncio_mode=strict", f"{file.name}::test_transfer", *given)
    page = pytester.path / "pages" / f"{file.name}-test_transfer.html"
    result.stdout.fnmatch_lines([f"*page: {page}"])
    assert "--interleave-replay &#39;default order&#39;" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_folder_that_is_none_is_refused_before_anything_runs(pytester):
    """With one line and pytest's status for wrong usage."""
    file = pytester.makefile(".txt", taken="")
    result = pytester.runpytest_inprocess("-q", "-o", "asyncio_mode=strict", "--interleave-html", file.name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --interleave-html: no pages can be written to *taken.txt: *taken.txt is no folder"]
    )
