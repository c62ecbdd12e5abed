"""What stands where in a timeline: columns, boxes, bars, arrows, and the lines of source that it shows."""

from dataclasses import replace

import pytest
from explained import DECIDING, HERE, LANES, explanation, fact, failing, long_one, passing, row, timeline
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.explanation import Frame, Lane, Pending
from harness.model.outcome import Ending
from harness.report.timeline.columns import BROKEN, FAULT, FIRST, HELD, SECOND, Column, alike, columns_of
from harness.report.timeline.drawing import AXIS, draw
from harness.report.timeline.page import make_page
from harness.report.timeline.sources import MAX_WIDTH, Place, Sources
from harness.report.timeline.words import badge, describe, ending_clause, format_time, short_place


def drawn(one, *, same=0):
    """Return the drawing of an execution."""
    return draw(one, columns_of(one), prefix="f", same=same)


def test_facts_stand_in_the_box_of_their_turn_and_marks_say_why_to_look():
    """The held op is marked where it is parked, a deciding event where it happens, the violation where it shows."""
    assert columns_of(failing()) == [
        Column(0, ()),
        Column(1, (2, 3), (HELD,)),
        Column(4, ()),
        Column(5, ()),
        Column(6, (), (FIRST,)),
        Column(7, ()),
        Column(8, ()),
        Column(9, (10,), (BROKEN,)),
    ]
    assert [column for column in columns_of(passing()) if column.marks] == [
        Column(6, (7,), (SECOND,)),
        Column(9, (), (FIRST,)),
    ]


def test_a_cancellation_from_outside_stands_alone():
    """It is of no turn and of no task, and it is marked as a fault."""
    rows = [row(1, 0, "waits"), fact(1, 0, "run 0 cancelled", "flow is cancelled (run 0)"), row(2, 0, "is cancelled")]
    columns = columns_of(timeline(rows))
    assert columns == [Column(0, ()), Column(1, (), (FAULT,)), Column(2, ())]
    assert describe(timeline(rows), columns[1]) == "turn 1, 1 µs, event loop: run 0 cancelled; a fault"


def test_of_a_long_execution_what_is_near_the_marks_is_shown():
    """With the number of rows that are left out before each gap, and nothing is shown twice."""
    one = replace(long_one(tasks=5, turns=1000), broken=700, deciding=((100, 900),))
    shown = columns_of(one, limit=60)
    assert [(column.head, column.skipped) for column in shown if column.skipped] == [(90, 90), (690, 579), (891, 181)]
    assert len(shown) == 60
    assert [column.marks for column in shown if column.marks] == [(FIRST,), (BROKEN,), (SECOND,)]


def test_two_executions_are_alike_up_to_their_first_difference():
    """By task and by what happens; times do not count."""
    assert alike(failing(), passing()) == 5
    assert alike(failing(), failing()) == 11


def test_each_box_has_a_column_of_its_own_within_its_lane():
    """Time goes to the right, and a pause of the clock takes room."""
    drawing = drawn(failing(), same=5)
    assert [(track.name, track.path) for track in drawing.tracks] == [
        *((lane.name, lane.path) for lane in LANES),
        ("event loop", "event loop"),
    ]
    assert [(box.ident, drawing.tracks[box.track].name, box.symbol, box.lines, box.alike) for box in drawing.boxes] == [
        ("f0", "flow", "·", (), True),
        ("f1", "done", "·", ("completes", "save#1 is called"), True),
        ("f4", "flaky", "·", (), True),
        ("f5", "flaky", "▼", ("call arrives",), False),
        ("f6", "flaky", "✕", ("raises RuntimeError",), False),
        ("f7", "event loop", "○", (), False),
        ("f8", "flow", "✕", ("raises RuntimeError",), False),
        ("f9", "done", "⊘", ("save#1 is cancelled", "is cancelled"), False),
    ]
    assert [gap.text for gap in drawing.gaps] == ["+5 ms"]
    assert [tick.turn for tick in drawing.ticks] == [1, 2, 3, 3, 4, 5, 6, 7]
    check_geometry(drawing)


def test_a_box_says_first_what_was_noted_and_last_how_the_turn_ends():
    """Four lines at most, and long ones are cut; the label has all of it."""
    rows = [row(1, 0, "raises RuntimeError"), *(fact(1, 0, text) for text in ("a", "b" * 40, "c", "d"))]
    (box,) = drawn(timeline(rows)).boxes
    assert box.lines == ("a", "b" * 25 + "…", "and 2 more", "raises RuntimeError")
    assert box.label == f"turn 1, 1 µs, flow: a, {'b' * 40}, c, d, raises RuntimeError"


def test_of_a_long_name_the_end_is_shown():
    """The whole path stays at hand."""
    path = "/".join(["deliver_messages"] * 8)
    (track,) = drawn(timeline([row(1, 0, "waits")], lanes=[Lane(path, path)])).tracks
    assert (track.name, track.path) == ("…" + path[-71:], path)
    assert track.height > 4 * 15


def test_an_op_is_a_bar_from_its_parking_to_its_arrival():
    """One that never arrives ends where its task goes on without it; a job goes on all the same."""
    drawing = drawn(failing())
    middle = {box.ident: box.x + box.width / 2 for box in drawing.boxes}
    held, call = sorted(drawing.bars, key=lambda bar: bar.name, reverse=True)
    assert (held.name, held.how, held.arrived) == ("save#1.commit", "held", False)
    assert held.label == "save#1.commit, held, does not arrive"
    assert (held.x, held.x + held.width) == pytest.approx((middle["f1"], middle["f9"]))
    assert (call.name, call.how, call.arrived) == ("call", "", True)
    assert (call.x, call.x + call.width) == pytest.approx((middle["f4"], middle["f5"]))
    job = replace(failing().ops[0], kind="job")
    drawing = drawn(replace(failing(), ops=(job,)))
    assert drawing.bars[0].x + drawing.bars[0].width == pytest.approx(drawing.width)


def test_a_held_turn_is_a_bar_from_where_it_was_held():
    """No turn parked it; a hold that the execution did not outlive goes on to the end."""
    rows = [
        row(1, 0, "waits"),
        row(1, 0, "held", kind="held"),
        row(2, 1, "waits"),
        row(2, 0, "turn arrives", kind="arrival"),
    ]
    held = Pending("flow/turn", "turn", 0, HERE, parked=-1, arrived=3, held=True)
    drawing = drawn(timeline(rows, ops=[held]))
    middle = {box.ident: box.x + box.width / 2 for box in drawing.boxes}
    assert [(bar.x, bar.x + bar.width) for bar in drawing.bars] == [pytest.approx((middle["f1"], middle["f3"]))]
    assert [column.marks for column in columns_of(timeline(rows, ops=[held]))] == [(), (HELD,), (), (HELD,)]
    (bar,) = drawn(timeline(rows[:3], ops=[replace(held, arrived=-1)])).bars
    assert not bar.arrived


def test_bars_of_one_lane_that_overlap_lie_below_each_other():
    """And one that begins when another has ended takes its place."""
    rows = [row(turn, 0, "waits") for turn in range(1, 6)]
    ops = [
        Pending(f"flow/{name}", "point", 0, HERE, begin, end)
        for name, begin, end in (("a", 0, 2), ("b", 1, 3), ("c", 2, 4))
    ]
    bars = {bar.name: bar.y for bar in drawn(timeline(rows, lanes=LANES[:1], ops=ops)).bars}
    assert bars["a"] == bars["c"] < bars["b"]


def test_wake_ups_leave_their_cause_and_end_where_the_woken_turn_begins():
    """Straight along a lane; up or down in the column of the cause between lanes."""
    drawing = drawn(failing())
    boxes = {box.ident: box for box in drawing.boxes}
    assert [(arrow.cause, arrow.woken) for arrow in drawing.arrows] == [
        ("f0", "f1"),
        ("f0", "f4"),
        ("f5", "f6"),
        ("f6", "f7"),
        ("f7", "f8"),
        ("f8", "f9"),
    ]
    for arrow in drawing.arrows:
        cause, woken = boxes[arrow.cause], boxes[arrow.woken]
        x = float(arrow.path[1:].split()[0])
        assert cause.x < x <= cause.x + cause.width
        assert float(arrow.path.rpartition("H")[2]) == pytest.approx(woken.x, rel=1e-4)
        assert ("V" in arrow.path) == (cause.track != woken.track)


def test_what_one_execution_has_alone_begins_at_a_line():
    """And there is none where there is nothing to compare, or where all is alike."""
    drawing = drawn(failing(), same=5)
    before = max(box.x + box.width for box in drawing.boxes if box.alike)
    after = min(box.x for box in drawing.boxes if not box.alike)
    assert before < drawing.differs < after
    assert drawn(failing()).differs == drawn(failing(), same=11).differs == -1
    assert drawing.broken > drawing.boxes[-1].x + drawing.boxes[-1].width


@st.composite
def executions(draw_one):
    """Draw an execution of any shape."""
    kinds = st.sampled_from(["turn", "callback", "arrival", "held", "fact"])
    rows = []
    for turn in range(1, draw_one(st.integers(1, 14)) + 1):
        kind = draw_one(kinds)
        lane = -1 if kind == "callback" else draw_one(st.integers(0, 2))
        text = draw_one(st.sampled_from(["waits", "returns", "is cancelled", "x" * 80, "commits"]))
        rows.append(row(turn, lane, text, kind=kind, now_s=draw_one(st.floats(0, 3)) + turn))
    ops = [
        Pending(f"flow/op {at}", draw_one(st.sampled_from(["point", "job"])), rows[at].lane, HERE, at, arrived)
        for at in draw_one(st.lists(st.integers(0, len(rows) - 1), max_size=6))
        for arrived in [draw_one(st.one_of(st.just(-1), st.integers(at, len(rows) - 1)))]
    ]
    pairs = st.tuples(st.integers(0, len(rows) - 1), st.integers(0, len(rows) - 1))
    wake_ups = [pair for pair in draw_one(st.lists(pairs, max_size=8)) if pair[0] < pair[1]]
    return timeline(rows, ops=ops, wake_ups=wake_ups)


@pytest.mark.slow
@given(executions())
@settings(max_examples=40, deadline=None)
def test_nothing_overlaps_and_nothing_lies_outside(one):
    """Whatever happens in an execution."""
    check_geometry(drawn(one))


def check_geometry(drawing):
    """Check that boxes have columns of their own, and that all lies within its lane and the drawing."""
    end = 0.0
    for box in drawing.boxes:
        assert box.x > end
        end = box.x + box.width
        track = drawing.tracks[box.track]
        assert track.y <= box.y
        assert box.y + box.height <= track.y + track.height
    assert end < drawing.width
    y = AXIS
    for track in drawing.tracks:
        assert track.y == y
        y += track.height
    assert y == drawing.height
    for bar in drawing.bars:
        track = next(track for track in reversed(drawing.tracks) if track.y <= bar.y)
        assert bar.y + 15 <= track.y + track.height
        assert all(bar.y >= box.y + box.height for box in drawing.boxes if drawing.tracks[box.track] is track)
        assert 0 <= bar.x < bar.x + bar.width <= drawing.width + 4


def test_a_box_is_described_in_one_sentence():
    """For who does not see where it stands."""
    one = failing()
    assert describe(one, columns_of(one)[1]) == ("turn 2, 2 µs, flow/done: completes, save#1 is called, waits; held")
    assert describe(one, columns_of(one)[5]) == "turn 5, 5.005 ms, event loop: call gather.<locals>._done_callback"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (1.2e-5, "12 µs"),
        (0.005, "5 ms"),
        (0.0050134, "5.013 ms"),
        (1.25, "1.25 s"),
        (86400.0, "86400 s"),
    ],
)
def test_virtual_time_has_the_unit_that_suits_it(seconds, text):
    """Whole microseconds, or up to three digits behind the point."""
    assert format_time(seconds) == text


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Ending("returned"), "the program returned"),
        (Ending("raised", error=ValueError("no")), "the program raised ValueError: no"),
        (Ending("deadlock"), "the program ended in a deadlock"),
        (Ending("turn-limit"), "the program did not end within its turns"),
    ],
)
def test_an_ending_is_a_clause(ending, text):
    """Whatever its kind is called."""
    assert ending_clause(ending) == text


def test_marks_are_one_word_on_the_drawing():
    """And keep the number of their ordering."""
    assert [badge(mark) for mark in (FIRST, f"{SECOND} (2)", HELD, BROKEN, "let in early")] == [
        "1st",
        "2nd (2)",
        "held",
        "broken",
        "early",
    ]


def test_paths_are_those_that_a_reader_knows(monkeypatch, tmp_path):
    """From the current folder, or from the folder of libraries."""
    monkeypatch.chdir(tmp_path)
    assert short_place(f"{tmp_path}/scenarios/one.py:7") == "scenarios/one.py:7"
    assert short_place("/usr/lib/python3/site-packages/agent_framework/_types.py:45") == "agent_framework/_types.py:45"
    assert short_place("") == ""


def test_an_excerpt_holds_each_line_once_and_says_where_lines_are_missing(tmp_path):
    """Four lines around each line of interest; a place outside the file, or a file that is gone, has no link."""
    file = tmp_path / "program.py"
    file.write_text("".join(f"line {number}\n" for number in range(1, 31)) + "x" * 500 + "\n")
    frames = (Frame(f"{file}:6", "main"), Frame(f"{file}:8", "work"))
    sources = Sources([f"{file}:25", f"{file}:31", f"{tmp_path}/gone.py:3", ""], [frames, (), frames])
    (excerpt,) = sources.excerpts
    assert [(line.number, line.used) for line in excerpt.lines if line.gap] == [(2, False), (21, False)]
    assert [line.number for line in excerpt.lines] == [*range(2, 13), *range(21, 32)]
    assert [line.number for line in excerpt.lines if line.used] == [6, 8, 25, 31]
    assert excerpt.lines[-1].text == "x" * MAX_WIDTH + "…"
    assert sources.place(f"{file}:8", "work") == Place(short_place(f"{file}:8"), "work", "s1-8", "line 8")
    assert sources.place(f"{tmp_path}/gone.py:3").link == ""
    (stack,) = sources.stacks
    assert [(place.function, place.link) for place in stack.places] == [("main", "s1-6"), ("work", "s1-8")]
    assert sources.stack_ident(frames) == stack.ident


def test_a_page_points_from_the_deciding_ordering_to_its_turns():
    """In each schedule, or says that it does not happen there."""
    (pair,) = make_page(explanation(), replay="harness replay x").orderings
    assert [(event.name, event.anchors) for event in pair] == [
        (DECIDING[0], (("failing", "f6"), ("passing", "p9"))),
        (DECIDING[1], (("failing", ""), ("passing", "p6"))),
    ]


def test_a_page_says_what_is_known_and_what_is_not():
    """Nothing decides, no passing schedule, not deterministic, oracles switched off."""
    page = make_page(
        explanation(
            deciding=None,
            unexplained="each execution blocks",
            passing=None,
            difference="turn 4",
            without={"no-zombies": "by design"},
            sleeps=("sleep(1) at x.py:3",),
        ),
        replay="harness replay x",
    )
    assert (page.orderings, page.decided, [panel.ident for panel in page.panels]) == (
        (),
        "No ordering is known to decide: each execution blocks.",
        ["failing"],
    )
    assert page.facts == (
        ("rung", "exact"),
        ("sleeps that stand for work of unknown duration", "sleep(1) at x.py:3"),
        ("found", "after 3 executions by sweep"),
        ("NOT deterministic", "executed again, it went another way; first difference: turn 4"),
        ("not judged", "no-zombies (by design)"),
    )


def test_a_box_with_little_room_keeps_what_tells_most():
    """In its order, and last how the turn ends."""
    facts = [
        replace(fact(2, 1, text), weight=weight)
        for text, weight in (("begins", 6), ("save#1 is called", 5), ("save#1 takes its snapshot", 4))
    ]
    chosen = replace(row(2, 1, "save#1 raises before commit", kind="choice"), weight=1)
    failed = replace(fact(2, 1, "save#1 raises"), weight=0)
    one = timeline([row(2, 1, "raises StorageFault"), *facts, chosen, failed])
    (box,) = drawn(one).boxes
    assert box.lines == ("save#1 raises before comm…", "save#1 raises", "and 3 more", "raises StorageFault")
