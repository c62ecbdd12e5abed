"""What CI systems show: GitHub's annotations, and properties."""

import os
from pathlib import Path

from harness.model.explanation import Deciding, Explanation, Moment, Ordering, Row, Timeline
from harness.model.outcome import Ending, Violation
from harness.model.rung import Rung
from harness.model.schedule import Schedule
from harness.report.annotations import github_annotation, place_to_show, properties

HERE = str(Path.cwd() / "bank.py")


def explanation(*, first="", rows=()):
    """Return the explanation of a failure with one deciding ordering, whose first event is at ``first``."""
    ordering = Ordering(Moment("late/queue arrives", first), Moment("withdraw/database arrives", "/lib/x.py:1"))
    timeline = Timeline(Schedule(), "hold withdraw/database", Rung.EXACT, Ending("raised"), True, rows=rows, broken=0)
    return Explanation(
        title="test_transfer",
        setup={},
        violation=Violation("assertion", "80 == 70\n100%, of all", 8),
        promise="",
        failing=timeline,
        deciding=Deciding((ordering,), 2, 2),
    )


def test_an_annotation_is_one_line_with_everything_escaped():
    """Colons and commas in the properties, line ends and percent signs in the text."""
    found = {name.removeprefix("interleave_"): text for name, text in properties(explanation(first=f"{HERE}:7"))}
    assert github_annotation("test_bank.py::test_transfer: a, b", found) == (
        "::error file=bank.py,line=7,title=test_bank.py%3A%3Atest_transfer%3A a%2C b::80 == 70%0A100%25, of all"
        "%0Afails when late/queue arrives before withdraw/database arrives"
        "%0Aschedule: hold withdraw/database (rung exact)"
    )


def test_properties_carry_what_replays_and_what_decides():
    """One by one, so that a CI system can show them."""
    found = dict(properties(explanation(first=f"{HERE}:7")))
    assert found == {
        "interleave_schedule": Schedule().token(),
        "interleave_text": "hold withdraw/database",
        "interleave_rung": "exact",
        "interleave_oracle": "assertion",
        "interleave_message": "80 == 70\n100%, of all",
        "interleave_deciding": "late/queue arrives before withdraw/database arrives",
        "interleave_where": f"{HERE}:7",
    }


def test_the_place_is_in_the_users_own_code():
    """Not in a library, nor in a virtual environment; else where the test is."""
    row = Row(3, 0.0, 0, "turn", "", "waits", f"{HERE}:4", 6)
    library = os.path.join(Path.cwd(), ".venv", "lib", "x.py:3")
    assert place_to_show(explanation(first=library, rows=(row,))) == f"{HERE}:4"
    assert place_to_show(explanation(first=library), fallback="test_bank.py:2") == "test_bank.py:2"
