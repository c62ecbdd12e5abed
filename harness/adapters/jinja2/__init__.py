"""The HTML page of a counterexample, rendered by Jinja2.

Owns the templates, the file names and the writing of files; must not know what decides.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.model.explanation import Explanation
from harness.report.timeline.page import make_page
from harness.report.timeline.words import badge

_HERE = Path(__file__).parent


def render(explanation: Explanation, *, replay: str, export: str = "") -> str:
    """Return the page of ``explanation`` as HTML that needs nothing but itself.

    replay, export: the command lines that execute the schedule again, and that write it as a test ("" for none).
    """
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(badge=badge, rem=_rem)
    script = (_HERE / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        page=make_page(explanation, replay=replay, export=export),
        style=Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=Markup(f"sha256-{digest}"),
    )


def _rem(pixels: float) -> str:
    """Return pixels at a font size of 16 as a number of rem, so that the page grows with the reader's font."""
    return f"{pixels / 16:.4f}".rstrip("0").rstrip(".")
