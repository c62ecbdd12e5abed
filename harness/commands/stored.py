"""``harness replay DIR``: everything that a failure store holds, executed here.

Owns the verdict per entry; must not change the store.
"""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.commands.pages import write_replayed
from harness.commands.recorded import given_schedule, split
from harness.commands.tested import STATUS, replaying, run_pytest, verdict_of
from harness.model.errors import DivergenceError, UsageError
from harness.model.scenario import Scenario
from harness.search.replay import replay, replay_text
from harness.search.store import Entry, Store, Warn

if TYPE_CHECKING:
    from harness.adapters.jinja2.folder import PageFolder


# What is printed before an entry.
MARKS = {"violation": "FAILS", "diverged": "DIVERGED", "error": "ERROR", "fixed": "FIXED"}


def is_store(path: Path) -> bool:
    """Return whether ``path`` is a failure store, or one file of it."""
    return path.is_dir() or (path.suffix == ".json" and path.is_file())


def named_by(entry: Entry) -> str:
    """Return what ``entry`` is of: a scenario, or the id of a test."""
    setup = entry.schedule.setup
    return entry.where if "scenario" in setup else setup.get("test", entry.where)


def recorded_options(entry: Entry) -> dict[str, Any]:
    """Return the options with which ``entry`` was found; none for a test, whose marker has them."""
    setup = entry.schedule.setup
    if "scenario" not in setup:
        return {}
    return {
        "storage": setup["storage"],
        "shapes": setup.get("shapes") == "on",
        "faults": split(setup.get("faults", "")),
        "fix": setup.get("fix", ""),
    }


def diverged_at(error: DivergenceError) -> str:
    """Return in one line where a schedule was left."""
    return f"at choice {error.choice} recorded: {error.recorded}, now: {error.met}"


def status_of(verdicts: Iterable[str]) -> int:
    """Return the exit status for the verdicts on all entries."""
    found = list(verdicts)
    return next((status for verdict, status in STATUS.items() if verdict in found), 0)


def where_is(scenario: Scenario) -> str:
    """Return the file and the name of a scenario, or the name alone where its file lies outside this folder.

    No absolute path: a store goes to other machines.
    """
    file = Path(inspect.getsourcefile(scenario.program) or "").resolve()
    here = Path.cwd().resolve()
    return f"{file.relative_to(here).as_posix()}::{scenario.name}" if file.is_relative_to(here) else scenario.name


def replay_store(folder: Path, *, pages: PageFolder | None, as_json: bool, warn: Warn) -> int:
    """Execute every schedule of ``folder`` and say what became of it; return the exit status.

    pages: where the page of each one that still fails goes.
    """
    rows = [(entry, *_outcome(entry, pages)) for entry in Store(folder, warn=warn).entries()]
    if as_json:
        objects = [
            {"where": entry.where, "text": entry.text, "verdict": verdict, "message": said, "schedule": entry.token}
            for entry, verdict, said in rows
        ]
        click.echo(json.dumps({"store": str(folder), "results": objects}, indent=2))
    else:
        for entry, verdict, said in rows:
            click.echo(f"{MARKS[verdict]}: {entry.title}: {said}")
        if not rows:
            click.echo(f"{folder} holds no failing schedule")
        if pages is not None and any(verdict == "violation" for _, verdict, _ in rows):
            click.echo(f"pages: {pages.folder}")
    return status_of(verdict for _, verdict, _ in rows)


def _outcome(entry: Entry, pages: PageFolder | None) -> tuple[str, str]:
    """Return the verdict on one entry and one line: of its token, or of its words where the token does not fit."""
    try:
        verdict, said = _followed(entry, entry.token, pages)
        if verdict != "diverged" or not entry.text:
            return verdict, said
        again, how = _followed(entry, entry.text, pages)
    except UsageError as error:
        return "error", f"it cannot be executed here: {error}"
    # the words may name what the program has no longer
    return (verdict, said) if again == "error" else (again, f"{how} (in words; the token diverged {said})")


def _followed(entry: Entry, schedule: str, pages: PageFolder | None) -> tuple[str, str]:
    """Return the verdict on one schedule of ``entry``, a token or words."""
    if "scenario" not in entry.schedule.setup:
        return _test_outcome(entry, schedule, pages)
    try:
        given = given_schedule(entry.where, schedule, **recorded_options(entry))
        recorded = given.schedule
        outcome = replay_text(given.target, recorded) if isinstance(recorded, str) else replay(given.target, recorded)
    except DivergenceError as error:
        return "diverged", diverged_at(error)
    except UsageError as error:
        return "error", f"it cannot be executed here: {error}"
    broken = outcome.execution.violations
    if broken:
        if pages is not None:
            line = f"harness replay {shlex.join([entry.where, schedule])}"
            write_replayed(pages, given.target, recorded, replay=line)
        return "violation", f"{broken[0].oracle}: {broken[0].message.splitlines()[0]}"
    return "fixed", f"{entry.oracle} holds now"


def _test_outcome(entry: Entry, schedule: str, pages: PageFolder | None) -> tuple[str, str]:
    """Let pytest replay the schedule of a test."""
    verdict, said = verdict_of(run_pytest(named_by(entry), replaying(schedule, pages=pages)))
    return verdict, f"{entry.oracle} holds now" if verdict == "fixed" else said or f"{entry.oracle}: {entry.message}"
