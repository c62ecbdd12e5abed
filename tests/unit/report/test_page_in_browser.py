"""The page of a counterexample in a real browser: `make browser` runs these where Chromium is installed.

What can be told from the HTML alone is tested in test_pages.py, everywhere.
"""

import itertools

import pytest
from chromium import NAMES, Chromium, find_browser
from explained import explanation, failing, long_one, passing

from harness.adapters.jinja2 import render

pytestmark = [pytest.mark.slow, pytest.mark.browser]

# Widths in CSS pixels; 640 is 1280 at 200 % zoom.
WIDTHS = (1280, 800, 640, 400)


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests."""
    executable = find_browser()
    if executable is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)}, and in the variable CHROMIUM)")
    with Chromium(executable) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """#9615 in a dozen turns."""
    file = tmp_path_factory.mktemp("pages") / "issue_9615.html"
    file.write_text(render(explanation(), replay="harness replay h1." + "x" * 300), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    """Sixty tasks that take six hundred turns."""
    file = tmp_path_factory.mktemp("pages") / "long.html"
    file.write_text(
        render(explanation(failing=long_one(tasks=60, turns=600), passing=passing()), replay="x"), encoding="utf-8"
    )
    return file


def opened(browser, page, *, width=1280, anchor="", **media):
    """Open a page in a window of this width."""
    browser.view(width, **media)
    browser.open(page, anchor=anchor)


def focused(browser):
    """Return the id of what has the focus."""
    return browser.evaluate("document.activeElement.id")


def press(browser, *keys):
    """Press keys one after another; return what has the focus then."""
    for key in keys:
        browser.press(key)
    return focused(browser)


def test_it_opens_from_disk_and_asks_for_nothing(browser, page):
    """No request but that for the page itself, nothing refused, no error of the script."""
    opened(browser, page)
    asked = [event["params"]["request"]["url"] for event in browser.events if "requestWillBeSent" in event["method"]]
    assert [url for url in asked if "ExtraInfo" not in url] == [page.as_uri()]
    assert [event for event in browser.events if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_every_width(browser, page, long_page, width):
    """Only drawings, tables and sources scroll sideways, never the page; names of lanes stay in sight."""
    for file in (page, long_page):
        opened(browser, file, width=width)
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        browser.evaluate("document.querySelector('.timeline').scrollLeft = 1e6")
        table = browser.evaluate("(node => [node.scrollWidth, node.clientWidth])(document.querySelector('.scroll'))")
        assert table[0] == table[1] or width < 1000
        name, frame = browser.evaluate(
            "['.lane-name', '.timeline'].map(name => document.querySelector(name).getBoundingClientRect().left)"
        )
        assert frame <= name <= frame + 1


def test_arrow_keys_move_along_a_lane_and_between_lanes(browser, page):
    """The first stop is the first mark; a drawing is one stop of the Tab key; w and e follow wake-ups."""
    opened(browser, page)
    browser.evaluate("document.querySelector('#failing .timeline').previousElementSibling.lastElementChild.focus()")
    assert press(browser, "Tab") == "f1"
    assert press(browser, "ArrowRight") == "f9"
    assert press(browser, "ArrowRight") == "f9"
    assert press(browser, "Home") == "f1"
    assert press(browser, "ArrowDown") == "f4"
    assert press(browser, "End") == "f6"
    assert press(browser, "w") == "f5"
    assert press(browser, "e", "e") == "f7"
    assert press(browser, "ArrowDown") == "f7"
    assert press(browser, "ArrowUp") == "f6"
    assert press(browser, "Tab").startswith("f") is False
    stops = browser.evaluate("[...document.querySelectorAll('.box')].filter(box => box.tabIndex === 0).length")
    assert stops == 2


def test_enter_opens_a_turn_and_escape_returns_to_it(browser, page):
    """With all that the table says of it, its stack, and its source."""
    opened(browser, page)
    browser.evaluate("document.getElementById('f6').focus()")
    for key in ("Enter", " "):
        browser.press(key)
        assert browser.evaluate("document.getElementById('details').open")
        said = browser.evaluate("document.getElementById('details').innerText")
        assert "turn 4, 5.004 ms, flow/flaky: raises RuntimeError; first of the deciding ordering" in said
        for text in ("woken by\nturn 3", "wakes\nturn 5", "in outer:", "in inner:", "#9615 in a dozen rows"):
            assert text in said
        assert browser.evaluate("document.getElementById('details').contains(document.activeElement)")
        assert press(browser, "Escape") == "f6"
        assert not browser.evaluate("document.getElementById('details').open")


def test_a_link_of_an_open_turn_goes_on_to_the_next(browser, page):
    """It closes what is open."""
    opened(browser, page)
    browser.evaluate("document.getElementById('f6').focus()")
    browser.press("Enter")
    browser.evaluate("[...document.querySelectorAll('#details a')].find(link => link.hash === '#f7').click()")
    assert focused(browser) == "f7"
    assert not browser.evaluate("document.getElementById('details').open")


def test_links_to_turns_bring_them_into_sight(browser, long_page):
    """From the list of marks, from the table, and in the address."""
    in_sight = """(() => {
        const box = document.activeElement.getBoundingClientRect();
        const frame = document.activeElement.closest('.timeline').getBoundingClientRect();
        const gutter = document.querySelector('.lane-name').getBoundingClientRect().width;
        return box.left >= frame.left + gutter && box.right <= frame.right && box.top >= frame.top
            && box.bottom <= frame.bottom && box.top >= 0 && box.bottom <= innerHeight;
    })()"""
    opened(browser, long_page, prefers_reduced_motion="reduce")
    browser.evaluate("document.querySelector('#failing .jump a').click()")
    assert (focused(browser), browser.evaluate(in_sight)) == ("f599", True)
    browser.evaluate("document.querySelector('#t-f300 a').click()")
    assert (focused(browser), browser.evaluate(in_sight)) == ("f300", True)
    opened(browser, long_page, anchor="#f450", prefers_reduced_motion="reduce")
    assert (focused(browser), browser.evaluate(in_sight)) == ("f450", True)


def test_without_the_script_a_turn_leads_to_its_row(browser, page):
    """And every turn is a stop of the Tab key."""
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened(browser, page)
        tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
    assert sum(name.startswith("turn 4, 5.004 ms, flow/flaky: raises") for name in names(tree, "link")) == 1


def names(tree, role):
    """Return the names of the nodes of this role in an accessibility tree."""
    return [
        node.get("name", {}).get("value", "")
        for node in tree
        if not node.get("ignored") and node.get("role", {}).get("value") == role
    ]


def test_a_screen_reader_finds_landmarks_lanes_and_turns(browser, page):
    """Each with a name; the drawing's lines are not read."""
    opened(browser, page)
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    assert [len(names(tree, role)) for role in ("banner", "navigation", "main", "contentinfo")] == [1, 1, 1, 1]
    assert names(tree, "navigation") == ["On this page"]
    assert sorted(name for name in names(tree, "group") if name) == [
        "Failing schedule, a drawing",
        "Nearest passing schedule, a drawing",
        "Table: failing schedule",
        "Table: nearest passing schedule",
        "lane event loop, 1 turns and arrivals",
        "lane flow, 1 turns and arrivals",
        "lane flow, 2 turns and arrivals",
        "lane flow/done, 2 turns and arrivals",
        "lane flow/done, 3 turns and arrivals",
        "lane flow/flaky, 3 turns and arrivals",
        "lane flow/flaky, 3 turns and arrivals",
    ]
    assert "turn 2, 2 µs, flow/done: completes, save#1 is called, waits; held" in names(tree, "link")
    assert names(tree, "table") != []
    assert "" not in names(tree, "link")
    assert not [node for node in tree if node.get("role", {}).get("value") == "link" and node.get("description")]
    assert len(set(names(tree, "region"))) == len(names(tree, "region"))
    assert "wakes" in names(tree, "columnheader")


def test_dark_mode_and_less_motion_are_heeded(browser, page):
    """As the system asks for them."""
    paper, moves = "getComputedStyle(document.documentElement).backgroundColor", "transitionDuration"
    moving = f"getComputedStyle(document.querySelector('.box')).{moves}"
    opened(browser, page)
    assert (browser.evaluate(paper), browser.evaluate(moving)) == ("rgb(255, 255, 255)", "0.12s")
    opened(browser, page, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    assert (browser.evaluate(paper), browser.evaluate(moving)) == ("rgb(20, 23, 27)", "0s")
    opened(browser, page, forced_colors="active")
    edges = browser.evaluate("['.box', '.bar'].map(name => getComputedStyle(document.querySelector(name)).borderStyle)")
    assert all("none" not in edge for edge in edges)


def test_on_paper_a_drawing_is_cut_between_columns(browser, page, tmp_path):
    """Every turn is whole in exactly one strip, and the strips are gone afterwards."""
    long = tmp_path / "page.html"
    long.write_text(render(explanation(failing=long_one(tasks=4, turns=150)), replay=""), encoding="utf-8")
    for file, least in ((page, 1), (long, 4)):
        opened(browser, file)
        browser.evaluate("dispatchEvent(new Event('beforeprint'))")
        strips = browser.evaluate(
            "[...document.querySelectorAll('#failing .strip')].map("
            "strip => [...strip.querySelectorAll('.box')].map(box => box.getAttribute('href').slice(3)))"
        )
        boxes = browser.evaluate("[...document.querySelectorAll('#failing .lane > [id]')].map(box => box.id)")
        assert len(strips) >= least
        assert sorted(itertools.chain(*strips)) == sorted(boxes)
        assert browser.evaluate("new Set([...document.querySelectorAll('[id]')].map(node => node.id)).size") == (
            browser.evaluate("document.querySelectorAll('[id]').length")
        )
        browser.evaluate("dispatchEvent(new Event('afterprint'))")
        assert browser.evaluate("document.querySelectorAll('.strip').length") == 0
    browser.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000


def test_a_page_of_two_thousand_turns_stays_usable(browser, tmp_path):
    """It opens, and a key moves at once."""
    file = tmp_path / "huge.html"
    file.write_text(
        render(explanation(failing=long_one(tasks=40, turns=2300), passing=failing()), replay=""), encoding="utf-8"
    )
    opened(browser, file, prefers_reduced_motion="reduce")
    browser.evaluate("document.getElementById('f2299').focus()")
    took_ms = browser.evaluate(
        "(() => { const begin = performance.now(); for (let count = 0; count < 10; count++) "
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true})); "
        "return performance.now() - begin; })()"
    )
    assert focused(browser) == "f1899"
    assert took_ms < 10 * 500
