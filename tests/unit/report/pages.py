"""A page as a tree, and what any page must keep to: for tests that need no browser."""

import itertools
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}
CLOSED_IN_SVG = {"path", "line", "rect"}
FOCUSABLE = {"a", "button"}


@dataclass
class Node:
    """An element. text: of it and of all that is in it."""

    tag: str
    attributes: dict = field(default_factory=dict)
    children: list = field(default_factory=list)
    parent: "Node | None" = None

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag=None, **wanted):
        """Yield the elements below this one, in order; ``class_`` is one of the classes."""
        waiting = list(reversed(self.children))
        while waiting:
            child = waiting.pop()
            if isinstance(child, str):
                continue
            if (tag is None or child.tag == tag) and all(child.has(name, value) for name, value in wanted.items()):
                yield child
            waiting += reversed(child.children)

    def has(self, name, value):
        if name == "class_":
            return value in self.attributes.get("class", "").split()
        return self.attributes.get(name) == value

    @property
    def name(self):
        """The accessible name of a link, a button or a landmark."""
        return self.attributes.get("aria-label") or " ".join(self.text.split())


class Parser(HTMLParser):
    """Builds the tree; anything that is not closed in order is an error."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.now = Node("root")

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice: {names}"
        node = Node(tag, dict(attributes), parent=self.now)
        self.now.children.append(node)
        if tag not in VOID:
            self.now = node

    def handle_startendtag(self, tag, attributes):
        assert tag in CLOSED_IN_SVG
        self.now.children.append(Node(tag, dict(attributes), parent=self.now))

    def handle_endtag(self, tag):
        assert tag == self.now.tag, f"</{tag}> closes <{self.now.tag}>"
        self.now = self.now.parent

    def handle_data(self, data):
        self.now.children.append(data)


def parse(html):
    """Return the tree of a page."""
    parser = Parser()
    parser.feed(html)
    parser.close()
    assert parser.now is parser.root
    return parser.root


def check_page(html):
    """Check what holds for every page; return its tree."""
    root = parse(html)
    assert html.startswith("<!doctype html>")
    (page,) = root.all("html")
    assert page.attributes["lang"] == "en"
    assert next(page.all("title")).text.strip()
    check_references(root)
    check_self_contained(root)
    check_outline(root)
    return root


def check_references(root):
    """Anchors are unique, and all that points at one finds it."""
    idents = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(idents) == len(set(idents))
    known = {"", *idents}
    for link in root.all("a"):
        assert link.attributes["href"][0] == "#"
        assert link.attributes["href"] != "#"
        assert link.attributes["href"][1:] in known
        assert link.name
    for node in root.all():
        for attribute in ("aria-labelledby", "aria-describedby"):
            assert set(node.attributes.get(attribute, "").split()) <= known
        for attribute in ("data-from", "data-to"):
            assert node.attributes.get(attribute, "") in known


def check_self_contained(root):
    """Nothing is fetched: no address but anchors, no style sheet, script, font or picture from elsewhere."""
    (policy,) = root.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert not [node.tag for node in root.all() if node.tag in ("link", "img", "iframe", "object", "embed", "base")]
    for node in root.all():
        assert not set(node.attributes) & {"src", "srcset", "action", "xlink:href", "background", "poster", "ping"}
        assert not [name for name in node.attributes if name.startswith("on")]
        for name, value in node.attributes.items():
            if name != "href" and "url(" in (value or ""):
                assert value.startswith("url(#")
    (style,) = root.all("style")
    (script,) = root.all("script")
    assert not re.search(r"@import|url\(|http", style.text)
    assert not re.search(r"http|fetch\(|XMLHttpRequest|import\(|WebSocket|innerHTML|eval", script.text)


def check_outline(root):
    """One heading of the first level, none is skipped; landmarks; nothing changes the order of the keyboard."""
    levels = [int(node.tag[1]) for node in root.all() if re.fullmatch("h[1-6]", node.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    (body,) = root.all("body")
    marks = [child.tag for child in body.children if not isinstance(child, str)]
    assert [tag for tag in marks if tag in ("header", "nav", "main", "footer")] == ["header", "nav", "main", "footer"]
    assert [node.name for node in body.all("nav")] == ["On this page"]
    for section in body.all("section"):
        label = section.attributes["aria-labelledby"]
        assert next(root.all(id=label)).tag == "h2"
    assert {node.attributes.get("tabindex", "0") for node in root.all()} <= {"0", "-1"}
    for node in root.all("svg"):
        hidden = node if "aria-hidden" in node.attributes else node.parent
        assert hidden.attributes["aria-hidden"] == "true"


def colours(html, *, dark):
    """Return the colours of a page by name."""
    found = re.findall(r":root \{(.*?)\}", next(parse(html).all("style")).text, re.DOTALL)
    names = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", found[0]))
    return {**names, **dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", found[1]))} if dark else names


def contrast(one, other):
    """Return the contrast of two colours, 1 to 21. Source: WCAG 2.2, relative luminance."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
