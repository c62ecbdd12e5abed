"""What a CI system shows beside the code: GitHub's error annotations, and the properties of a test in JUnit's XML.

Owns the escaping and the names of properties; must not know which CI system runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.model.explanation import Explanation

# In front of the name of each property.
PREFIX = "interleave_"


def properties(explanation: Explanation, *, fallback: str = "") -> list[tuple[str, str]]:
    """Return what a CI system can show of a failure, as name and text.

    fallback: ``file:line`` to point at when no line below the current folder takes part.
    """
    deciding = explanation.deciding
    found = {
        "schedule": explanation.schedule.token(),
        "text": explanation.failing.text,
        "rung": explanation.rung.label,
        "oracle": explanation.violation.oracle,
        "message": explanation.violation.message,
        "deciding": "" if deciding is None else str(deciding),
        "where": place_to_show(explanation, fallback=fallback),
    }
    return [(f"{PREFIX}{name}", text) for name, text in found.items()]


def place_to_show(explanation: Explanation, *, fallback: str = "") -> str:
    """Return the ``file:line`` of the user's own code that an annotation belongs to.

    It is where what decides happens, else the last line of the user's that ran before the violation, else ``fallback``.
    """
    deciding = explanation.deciding
    moments = [] if deciding is None else [item.first for item in deciding.orderings]
    moments += [] if deciding is None else [item.second for item in deciding.orderings]
    rows = explanation.failing.rows[: explanation.failing.broken + 1]
    telling = sorted(enumerate(rows), key=lambda item: (item[1].weight, -item[0]))
    places = [*(moment.where for moment in moments), *(row.where for _, row in telling)]
    return next((place for place in places if _is_own(place)), fallback)


def _is_own(place: str) -> bool:
    path = Path(place.rpartition(":")[0])
    inside = bool(place) and path.is_relative_to(Path.cwd())
    return inside and not {"site-packages", ".venv"} & set(path.parts)


def github_annotation(title: str, found: Mapping[str, str]) -> str:
    """Return the workflow command that marks a line. found: as of ``properties``, without the prefix.

    Source: docs.github.com, "Workflow commands for GitHub Actions", setting an error message.
    """
    path, _, line = found["where"].rpartition(":")
    place = {"file": os.path.relpath(path), "line": line} if path else {}
    named = {**place, "title": title}
    settings = ",".join(f"{name}={_escaped(text, also=':,')}" for name, text in named.items())
    said = [found["message"], f"fails when {found['deciding']}" if found["deciding"] else ""]
    said += [f"schedule: {found['text']} (rung {found['rung']})"]
    return f"::error {settings}::{_escaped(chr(10).join(text for text in said if text))}"


def _escaped(text: str, *, also: str = "") -> str:
    for character in ("%", "\r", "\n", *also):
        text = text.replace(character, f"%{ord(character):02X}")
    return text
