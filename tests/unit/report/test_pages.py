"""The page of a counterexample, read as a browser and a screen reader would; no browser is needed."""

import base64
import hashlib
from dataclasses import replace

import pytest
from explained import explanation, fact, failing, long_one, passing, row, timeline
from pages import check_page, colours, contrast, parse

from harness.adapters.jinja2 import render
from harness.adapters.jinja2.folder import PageFolder, page_name
from harness.model.errors import UsageError
from harness.model.explanation import Frame, Lane
from harness.model.outcome import Violation

HOSTILE = "</script><script>alert(1)</script><b title=\"x\" onclick='y'>&amp; {{ 7 * 7 }}"


def page(**more):
    """Return a page that keeps to all rules."""
    return check_page(render(explanation(**more), replay="harness replay h1.token", export="harness export h1.token"))


def described(node):
    """Return the header cells and the cells of a row of a table as text."""
    return [" ".join(cell.text.split()) for cell in node.children if not isinstance(cell, str)]


def test_the_page_says_what_is_broken_and_how_to_see_it_again():
    """The promise, what happened instead, the rung, the line that replays it."""
    found = page()
    assert next(found.all("title")).text == "issue_9615 on memory: completed_steps_restored"
    assert [" ".join(node.text.split()) for node in found.all(class_="verdict")] == [
        "completed_steps_restored is violated"
    ]
    promise = " ".join(next(found.all(id="promise")).text.split())
    assert promise == (
        "Promise A step that completed is restored. What happens instead done(7) was executed again "
        "rungexact foundafter 3 executions by sweep Replay harness replay h1.token "
        "Export as a test harness export h1.token"
    )


def test_the_deciding_ordering_leads_to_its_turns():
    """With its source lines, in both schedules."""
    deciding = next(page().all(id="deciding"))
    said = " ".join(deciding.text.split())
    assert "It fails whenflow/flaky raises RuntimeError" in said
    assert "comes beforedone/save#1 commits (run 0)" in said
    assert "does not happen in the failing schedule; turn in the passing schedule" in said
    assert "10 of 10 executions in which it holds fail; 2 of 2 in which it does not hold pass." in said
    assert [link.attributes["href"] for link in deciding.all("a")] == ["#s1-1", "#f6", "#p9", "#s1-1", "#p6"]


def test_the_failing_schedule_is_above_the_passing_one():
    """Each in words, with what leads from one to the other."""
    found = page()
    panels = list(found.all("section", class_="panel"))
    assert [(panel.attributes["id"], next(panel.all("h2")).text) for panel in panels] == [
        ("failing", "Failing schedule"),
        ("passing", "Nearest passing schedule"),
    ]
    assert [next(panel.all(class_="schedule")).text for panel in panels] == [
        "hold done/save#1.commit",
        "default order",
    ]
    assert [item.text for item in next(found.all(class_="changes")).all("li")] == ["- hold done/save#1.commit"]


def test_every_turn_is_a_link_with_a_label_in_the_lane_of_its_task():
    """Lanes are groups with names; a turn leads to its row of the table."""
    drawing = next(next(page().all(id="failing")).all(class_="timeline"))
    assert drawing.attributes["role"] == "group"
    assert drawing.name == "Failing schedule, a drawing"
    lanes = [(lane.name, [box.attributes["id"] for box in lane.all("a")]) for lane in drawing.all(class_="lane")]
    assert lanes == [
        ("lane flow, 2 turns and arrivals", ["f0", "f8"]),
        ("lane flow/done, 2 turns and arrivals", ["f1", "f9"]),
        ("lane flow/flaky, 3 turns and arrivals", ["f4", "f5", "f6"]),
        ("lane event loop, 1 turns and arrivals", ["f7"]),
    ]
    boxes = list(drawing.all("a"))
    assert all(box.attributes["href"] == f"#t-{box.attributes['id']}" for box in boxes)
    assert [box.name for box in boxes if "marked" in box.attributes["class"]] == [
        "turn 2, 2 µs, flow/done: completes, save#1 is called, waits; held",
        "turn 7, 5.007 ms, flow/done: save#1 is cancelled, is cancelled; the promise is broken",
        "turn 4, 5.004 ms, flow/flaky: raises RuntimeError; first of the deciding ordering",
    ]


def test_the_drawing_needs_no_colour():
    """Marks are words, kinds are symbols, and a held op says so."""
    drawing = next(next(page().all(id="failing")).all(class_="timeline"))
    assert [badge.text for badge in drawing.all(class_="badge")] == ["held", "broken", "1st"]
    assert "".join(symbol.text for symbol in drawing.all(class_="symbol")) == "·✕·⊘·▼✕○"
    assert [bar.text for bar in drawing.all(class_="held")] == ["save#1.commit, held, does not arrive"]
    arrows = [(arrow.attributes["data-from"], arrow.attributes["data-to"]) for arrow in drawing.all(class_="wake")]
    assert arrows == [("f0", "f1"), ("f0", "f4"), ("f5", "f6"), ("f6", "f7"), ("f7", "f8"), ("f8", "f9")]


def test_the_table_has_every_turn_with_all_that_the_drawing_shows():
    """Time, task, facts, marks, what it waits for, source, stack, and wake-ups both ways."""
    (table,) = next(page().all(id="table-failing")).all("table")
    assert [cell.text for cell in table.all("th", scope="col")] == [
        "turn",
        "time",
        "task",
        "what happens",
        "marks",
        "waits for",
        "source",
        "stack",
        "woken by",
        "wakes",
    ]
    rows = [described(item) for item in list(table.all("tr"))[1:]]
    where = "tests/unit/report/explained.py:1"
    assert rows[1] == [
        "2",
        "2 µs",
        "flow/done",
        "completessave#1 is calledwaits",
        "held",
        "flow/done/save#1.commit (held), which does not arrive",
        where,
        "stack 1",
        "turn 1",
        "",
    ]
    assert rows[5] == [
        "5",
        "5.005 ms",
        "event loop",
        "call gather.<locals>._done_callback",
        "",
        "",
        "",
        "",
        "turn 4",
        "turn 6",
    ]
    assert len(rows) == 8


def test_each_turn_leads_to_its_source_line_and_its_stack():
    """The lines are in the page."""
    found = page()
    (line,) = next(found.all(id="t-f4")).all("a", href="#s1-1")
    assert line.text == "tests/unit/report/explained.py:1"
    shown = next(found.all(id="s1-1"))
    assert shown.text.split(maxsplit=1) == [
        "1",
        '"""Explanations made by hand: #9615 in a dozen rows, and others of any length."""\n',
    ]
    frames = [" ".join(item.text.split()) for item in next(found.all(id="k1")).all("li")]
    assert [frame.partition(":1 in ")[2].partition(":")[0] for frame in frames] == ["outer", "inner"]


def test_nothing_of_a_program_is_taken_for_markup(tmp_path):
    """Names, messages, source lines and the command line are text wherever they stand."""
    file = tmp_path / "hostile.py"
    file.write_text(f"{HOSTILE}\n")
    lanes = (Lane(HOSTILE, HOSTILE),)
    rows = [
        replace(row(1, 0, HOSTILE), stack=(Frame(f"{file}:1", HOSTILE),), where=f"{file}:1"),
        fact(1, 0, HOSTILE, HOSTILE),
    ]
    hostile = timeline(rows, lanes=lanes, text=HOSTILE)
    html = render(
        explanation(
            title=HOSTILE,
            promise=HOSTILE,
            violation=Violation(HOSTILE, HOSTILE, 1),
            failing=hostile,
            passing=None,
            changes=(HOSTILE,),
            found_by=HOSTILE,
        ),
        replay=HOSTILE,
    )
    found = check_page(html)
    assert "<script>alert" not in html
    assert not list(found.all("b"))
    assert len(list(found.all("script"))) == 1
    assert next(found.all(class_="command")).text == HOSTILE
    assert next(found.all(class_="lane-name")).text == f"…{HOSTILE[-71:]}"
    line = next(link for link in found.all("a") if link.text.endswith("hostile.py:1"))
    assert next(found.all(id=line.attributes["href"][1:])).text == f"1 {HOSTILE}\n"


def test_only_the_script_of_the_page_may_run():
    """The policy names its digest."""
    found = page()
    digest = base64.b64encode(hashlib.sha256(next(found.all("script")).text.encode()).digest()).decode()
    (policy,) = found.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].endswith(f"script-src 'sha256-{digest}'")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_is_sufficient(dark):
    """4.5 for text, 3 for edges and arrows, as WCAG 2.2 asks for at level AA."""
    names = colours(render(explanation(), replay=""), dark=dark)
    assert {"paper", "panel", "ink", "soft", "link", "held-paper"} <= set(names)
    text = [
        *((ink, paper) for ink in ("ink", "soft", "link") for paper in ("paper", "panel", "mark", "used")),
        *(("soft", paper) for paper in ("box",)),
        ("ink", "box"),
        ("bad", "paper"),
        ("held", "held-paper"),
        ("held", "panel"),
        ("paper", "ink"),
    ]
    edges = [(line, paper) for line in ("edge", "wake", "lit", "bad", "held", "ink") for paper in ("panel", "paper")]
    low = {pair: contrast(names[pair[0]], names[pair[1]]) for pair in text}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    low = {pair: contrast(names[pair[0]], names[pair[1]]) for pair in edges}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 3} == {}


def test_motion_dark_mode_paper_and_own_colours_are_heeded():
    """Transitions only for who did not ask for less motion; scrolling asks in the script."""
    found = parse(render(explanation(), replay=""))
    style, script = (next(found.all(tag)).text for tag in ("style", "script"))
    for query in ("prefers-color-scheme: dark", "forced-colors: active", "max-width: 40rem"):
        assert f"@media ({query})" in style
    assert "@media print" in style
    calm, _, rest = style.partition("@media (prefers-reduced-motion: no-preference) {")
    assert "transition" not in calm
    assert "transition" not in rest.partition("}\n}")[2]
    assert "animation" not in style
    assert 'matchMedia("(prefers-reduced-motion: reduce)")' in script


@pytest.mark.slow
def test_a_long_execution_is_cut_and_says_so():
    """A browser stays quick; what is left out is counted."""
    found = page(failing=long_one(tasks=60, turns=2300), passing=None, deciding=None)
    panel = next(found.all(id="failing"))
    assert len(list(panel.all(class_="box"))) == 2000
    assert "300 rows are left out, those furthest from what is marked" in " ".join(panel.text.split())


def test_an_execution_that_could_not_be_watched_has_a_page_all_the_same():
    """Without rows there is no drawing; the rest is there."""
    found = page(failing=timeline([], lanes=()), passing=None, deciding=None)
    assert not list(found.all(class_="timeline"))
    assert "This execution could not be looked into." in next(found.all(id="table-failing")).text


def test_a_schedule_that_passes_is_no_failure():
    """Such as the replay of one that was fixed."""
    found = page(failing=passing(), passing=None, deciding=None, violation=Violation("", "", 0))
    assert " ".join(next(found.all("header")).text.split()) == (
        "issue_9615 on memory No promise is broken in this schedule"
    )
    assert "What happens instead" not in found.text


@pytest.mark.parametrize(
    ("setup", "name"),
    [
        ({"scenario": "issue_9615", "storage": "memory"}, "issue_9615-memory"),
        (
            {"scenario": "issue_9615", "storage": "file", "fix": "shielded-save", "shapes": "on"},
            "issue_9615-file-shielded-save",
        ),
        (
            {"test": "tests/test_bank.py::TestBank::test_transfer[sqlite]", "storage": "sqlite"},
            "tests-test_bank.py-TestBank-test_transfer-sqlite",
        ),
        ({"test": "tests/test_größe.py::test_x[a/../b]"}, "tests-test_größe.py-test_x-a-..-b"),
        ({"test": "x" * 400}, "x" * 150),
        ({}, "program"),
    ],
)
def test_a_page_is_named_by_what_fails(setup, name):
    """The same name every time, and one that a file system takes."""
    assert page_name(setup) == name


def test_pages_are_written_whole_and_replaced(tmp_path):
    """The folder is made with the first one; two things of one name get two files."""
    folder = PageFolder(tmp_path / "new" / "pages")
    assert list(tmp_path.iterdir()) == []
    first = folder.write(explanation(), replay="harness replay one")
    again = folder.write(explanation(), replay="harness replay two")
    other = folder.write(
        explanation(setup={"scenario": "issue_9615", "storage": "memory", "clock": "frozen"}), replay="harness replay x"
    )
    assert [file.relative_to(tmp_path).as_posix() for file in (first, again, other)] == [
        "new/pages/issue_9615-memory.html",
        "new/pages/issue_9615-memory.html",
        "new/pages/issue_9615-memory-2.html",
    ]
    assert sorted(file.name for file in first.parent.iterdir()) == [
        "issue_9615-memory-2.html",
        "issue_9615-memory.html",
    ]
    assert "harness replay two" in first.read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_one_is_refused_at_once(tmp_path):
    """With one line, before anything is searched."""
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        with pytest.raises(UsageError) as caught:
            PageFolder(folder)
        assert str(caught.value) == f"no pages can be written to {folder}: {file} is no folder"
    with pytest.raises(UsageError, match=r"no pages can be written to /proc/pages: "):
        PageFolder(type(file)("/proc/pages"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_page_that_cannot_be_written_after_all_is_one_line(tmp_path):
    """The folder became a file in the meantime."""
    folder = PageFolder(tmp_path / "pages")
    (tmp_path / "pages").write_text("")
    with pytest.raises(UsageError, match=r"the page .*issue_9615-memory.html cannot be written: "):
        folder.write(explanation(failing=failing()), replay="")
