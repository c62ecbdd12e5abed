"""Schedules and tokens."""

import pytest

from harness.model.choice import Decision
from harness.model.errors import TokenError
from harness.model.rung import Rung
from harness.model.schedule import Schedule, parse_token

SCHEDULE = Schedule(
    decisions=(Decision(3, 1, "hold", "flow/done/save#1.commit", "flow/done/save#1.commit: hold"),),
    rung=Rung.EXACT,
    discipline="indices",
    setup={"scenario": "größe", "storage": "memory"},
    facts="0123abcd",
    turns="3.11:4567cdef",
)


def test_a_token_carries_the_whole_schedule():
    """Encoding and decoding give the same value."""
    assert parse_token(SCHEDULE.token()) == SCHEDULE


def test_a_token_is_one_word():
    """It can be pasted into a shell without quotes."""
    assert set(SCHEDULE.token()) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_every_single_changed_character_is_noticed():
    """A damaged token is refused, never executed."""
    token = SCHEDULE.token()
    for index in range(3, len(token) - 1):  # the last character may hold unused bits
        other = "A" if token[index] != "A" else "B"
        with pytest.raises(TokenError):
            parse_token(token[:index] + other + token[index + 1 :])


@pytest.mark.parametrize("text", ["", "h1.", "h2.abc", "h1.!!", "nonsense", "h1.AAAA"])
def test_what_is_no_token_is_refused_in_one_line(text):
    """The message is one line."""
    with pytest.raises(TokenError) as caught:
        parse_token(text)
    assert "\n" not in str(caught.value)
