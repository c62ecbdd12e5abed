"""``harness export``: a failing schedule as a pytest file, or as a script for a bug report.

Owns the check that the file fails on the stock loop before anybody gets it; must not know what it says.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from harness.adapters.targets import load_adapter
from harness.commands.recorded import Given, given_schedule, split
from harness.commands.tested import error_line, folder_of, run_pytest, tested_id
from harness.model.errors import DivergenceError, UsageError
from harness.model.files import write_whole
from harness.model.rung import Rung
from harness.model.schedule import parse_token
from harness.report.export.layout import lay_out
from harness.report.export.ops import in_short
from harness.report.export.probe import Probe, probe
from harness.report.export.source import ExportError
from harness.search.explain import explanation_of
from harness.search.readable import schedule_text
from harness.search.replay import watch
from harness.search.result import counterexample_of

NOT_SHOWN = 1


@click.command("export")
@click.argument("schedule", metavar="[SCENARIO] SCHEDULE", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write. Default: print.")
@click.option("--script", is_flag=True, help="A plain script, as one would attach to a bug report.")
@click.option("--storage", help="For a schedule in words: the storage. Default: the first of the scenario.")
@click.option("--shapes/--no-shapes", default=None, help="For a schedule in words: whether it names an await shape.")
@click.option("--faults", help="For a schedule in words: what may happen to a run.")
@click.option("--force", is_flag=True, help="Write it though it does not fail on the stock loop.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export_command(
    schedule: tuple[str, ...],
    output: Path | None,
    script: bool,
    storage: str | None,
    shapes: bool | None,
    faults: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Write a failing SCHEDULE as a test that needs pytest and asyncio only.

    SCHEDULE is a token, which carries the scenario's name, or words. The file names the operations by gates that open
    in the order of the failing execution, and is run on the stock loop first: it must fail there.
    Exit status 1 when it does not, and nothing is written.
    """
    if len(schedule) > 2:
        raise UsageError("export takes one scenario and one schedule; put words into quotes")
    scenario = schedule[0] if len(schedule) == 2 else ""
    if test := tested_id(scenario, schedule[-1]):
        finding, text, tried = exported_test(test, schedule[-1], script=script)
    else:
        given = given_schedule(scenario, schedule[-1], storage=storage, shapes=shapes, faults=split(faults))
        finding = Finding(given.scenario.name, given.target.setup["storage"], given.text)
        text, tried = exported(given, script=script)
    written = bool(text) and (tried.fails or force)
    if written and output is not None:
        _write(output, text)
    if as_json:
        click.echo(json.dumps(_object(finding, text, tried, output if written else None), indent=2))
    elif not tried.fails:
        click.echo(f"harness: {finding.title} does not show on the stock loop: {tried.detail}", err=True)
    if not written:
        return NOT_SHOWN
    if as_json:
        return 0
    if output is None:
        click.echo(text, nl=False)
    else:
        shown = "fails" if tried.fails else "does NOT fail"
        lines = text.count("\n")
        click.echo(f"{output}: {lines} lines; it {shown} on the stock loop ({tried.detail})")
    return 0


def _object(finding: Finding, text: str, tried: Probe, written: Path | None) -> dict[str, Any]:
    return {
        "scenario": finding.name,
        "storage": finding.storage,
        "text": finding.text,
        "fails_on_stock_loop": tried.fails,
        "detail": tried.detail,
        "lines": text.count("\n"),
        "file": None if written is None else str(written),
        "source": text,
    }


@dataclass(frozen=True, slots=True)
class Finding:
    """What is exported. name: of a scenario, or the id of a test. storage: "" where there is none. text: in words."""

    name: str
    storage: str
    text: str

    @property
    def title(self) -> str:
        """It, in one line."""
        return f"{self.name} on {self.storage} ({self.text})" if self.storage else f"{self.name} ({self.text})"


def exported_test(test: str, schedule: str, *, script: bool = False) -> tuple[Finding, str, Probe]:
    """Return what is exported, and the same as ``exported``, for a schedule of a test; pytest sets it up."""
    recorded = None if " " in schedule else parse_token(schedule)
    words = schedule if recorded is None else schedule_text(recorded.decisions)
    finding = Finding(test, "" if recorded is None else recorded.setup.get("storage", ""), words)
    with tempfile.TemporaryDirectory(prefix="export-") as folder:
        file = Path(folder) / ("found.script" if script else "found.test")
        options = ["--interleave-replay", schedule, "--interleave-export", str(file), "--interleave-no-store"]
        outcome = run_pytest(test, options)
        if not file.exists():
            raise UsageError(f"{finding.title} cannot be executed here: {error_line(outcome)}")
        found = json.loads(file.read_text(encoding="utf-8"))
    if "diverged" in found:
        raise DivergenceError(**found["diverged"])
    if "error" in found and not found.get("files"):
        raise ExportError(f"{finding.title}: {found['error']}")
    if not found["broken"]:
        return finding, "", Probe(False, "no promise is broken any more")
    if found["rung"] == Rung.RELAXED.label:
        raise ExportError(f"{finding.title} needs the rung relaxed: no run on the stock loop can show it")
    base = folder_of(test)
    path = [base, (base / test.partition("::")[0]).parent]
    text, tried = "", Probe(False, "")
    for draft in found["files"]:
        text = draft["text"]
        tried = probe(text, script=script, fails_with=draft["fails_with"], path=path)
        if tried.fails:
            break
    if "error" in found and not tried.fails:
        raise ExportError(f"{finding.title}: {found['error']}")
    return finding, text, tried


def exported(given: Given, *, script: bool = False) -> tuple[str, Probe]:
    """Return the plainest file that shows the finding, and how it did on the stock loop.

    When none shows it, the last one that was tried. Raises ExportError for a finding that cannot have one.
    """
    execution, parked = watch(given.target, given.schedule)
    if not execution.violations:
        return "", Probe(False, "no promise is broken any more")
    if execution.rung is Rung.RELAXED:
        raise ExportError(f"{_title(given)} needs the rung relaxed: no run on the stock loop can show it")
    adapter = load_adapter(given.scenario.adapter)
    if not hasattr(adapter, "drafts"):
        raise ExportError(f"{_title(given)}: no export is known for the adapter {given.scenario.adapter!r}")
    why = in_short(explanation_of(given.target, counterexample_of(execution), title=given.scenario.name))
    text, tried = "", Probe(False, "")
    for draft in adapter.drafts(given.scenario, given.target.setup, execution, parked):
        text = lay_out(replace(draft, why=why), draft.order, script=script)
        tried = probe(text, script=script, fails_with=draft.fails_with)
        if tried.fails:
            break
    return text, tried


def _title(given: Given) -> str:
    return f"{given.scenario.name} on {given.target.setup['storage']} ({given.text})"


def _write(output: Path, text: str) -> None:
    """Write the whole file or nothing."""
    try:
        write_whole(output, text)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from error
