"""The catalogue: which releases are searched for a range, and the table that is recorded."""

from pathlib import Path

import pytest

from harness.commands.catalogue import Entry, ends, markdown, plain, recorded

ROOT = Path(__file__).parents[2]
RELEASES = ["1.0.0", "1.9.0", "1.10.0", "1.11.0", "1.12.1"]
ENTRIES = [
    Entry("issue_1", "some-package", "<1.10", "no_zombies", "1.0.0: memory 3; 1.9.0: memory 3", "1.10.0"),
    Entry("issue_2", "some-package", ">=1.11", "progress"),
]


@pytest.mark.parametrize(
    ("affected", "inside", "outside"),
    [
        ("<1.10", ["1.0.0", "1.9.0"], ["1.10.0"]),
        (">=1.9,<1.12", ["1.9.0", "1.11.0"], ["1.0.0", "1.12.1"]),
        (">=1.11", ["1.11.0", "1.12.1"], ["1.10.0"]),
        ("==1.10.0", ["1.10.0"], ["1.9.0", "1.11.0"]),
        (">=2", [], []),
    ],
)
def test_the_ends_of_a_range_and_their_neighbours(affected, inside, outside):
    """In the order of versions, not of text."""
    assert ends(list(reversed(RELEASES)), affected) == (inside, outside)


def test_a_recorded_table_is_read_again(tmp_path):
    """Whole lines, and nothing from a file that is not there."""
    file = tmp_path / "catalogue.md"
    assert recorded(file) == {}
    file.write_text("# Catalogue\n\n" + markdown(ENTRIES))
    assert recorded(file) == {entry.scenario: entry for entry in ENTRIES}


def test_the_table_has_columns():
    """One line each, below the header."""
    lines = plain(ENTRIES).splitlines()
    assert lines[1].split() == [
        "issue_1",
        "some-package",
        "<1.10",
        "no_zombies",
        "1.0.0:",
        "memory",
        "3;",
        "1.9.0:",
        "memory",
        "3",
        "1.10.0",
    ]
    assert lines[2].split() == ["issue_2", "some-package", ">=1.11", "progress", "-", "-"]


def test_what_is_recorded_agrees_with_the_ranges():
    """Found on every release of a range that was searched, and on none next to it."""
    entries = recorded(ROOT / "docs" / "catalogue.md").values()
    assert entries
    for entry in entries:
        # a release that says nothing is clean; one on which the scenario does not load says so
        assert all(": " in part for part in entry.found.split("; ")), entry
        assert all(": " not in part or part.endswith(": cannot run") for part in entry.clean.split("; ")), entry
