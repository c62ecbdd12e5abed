"""What the drivers said, as Markdown tables.

Owns the tables, their columns and what a cell says; must not know how a driver is run. Bold is an alarm where stock
asyncio cannot fail, or a program with a failing order that is said to have none.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers_run import PEERS, Answer, Job
from benchmarks.programs import PROGRAMS

COMMAND = "python benchmarks/peers.py --write docs/benchmarks.md"
FAIRNESS = """\
The others are {versions}, each in an environment of its own, driven by the few lines of `benchmarks/peers/drive_*.py`
through their documented functions. All run the same source (`benchmarks/peers/cases.py`, `benchmarks/programs.py`), at
most two processes at a time, and alone where speed is measured. A cell has a time limit. So that each is at its best:

- Shrinking, replays and databases are off. `gc.freeze()` is called once before the first execution, since simloom
  collects after each.
- Of several strategies the one that found most in these programs is taken: detangle pct:3 (of auto, pct:2, pct:3,
  random; its default auto stands beside it), simloom pct:auto (of random, pct:auto), simloop pct (of random, pct).
- frontrun schedules the workers that it is given and no tasks that they create. It gets the tasks of each program as
  workers and, since it does not see that two functions share a variable through a closure, a copy of the source in
  which such variables are attributes. #9615 creates its tasks inside the framework, so that it is one worker. frontrun
  says `property_holds` also when its time or its number of executions ended first.
- seedloop keeps asyncio's order of tasks; its seeds draw entropy and a simulated network, so that it cannot find what
  needs another order. looptime is left out: it moves the clock and has one order.
- Bold is an alarm where stock asyncio cannot fail, or a program that some order breaks and that is said to be right.
  Ours names the rung, the least assumption that it rests on.
"""
ENDINGS = {"exhausted": "says there is none", "inconclusive": "inconclusive"}


@dataclass(frozen=True, slots=True)
class Column:
    """One tool as one table uses it. cannot: why it has no counterpart; then it is not asked."""

    peer: str
    label: str = ""
    strategy: str = ""
    cannot: str = ""

    def heading(self) -> str:
        """Return what stands above the column."""
        return f"{self.peer}, {self.label}" if self.label else self.peer


@dataclass(frozen=True, slots=True)
class Table:
    """One table. task: find, prove or speed. seeds, cap, seconds: per cell."""

    name: str
    title: str
    text: str
    programs: Mapping[str, str]
    columns: Sequence[Column]
    task: str
    seeds: int
    cap: int
    seconds: float

    def jobs(self) -> list[Job]:
        """Return the questions, one for each cell that has any."""
        return [self.job(program, column) for program in self.programs for column in self.columns if not column.cannot]

    def job(self, program: str, column: Column) -> Job:
        """Return the question of one cell."""
        return Job(column.peer, self.task, program, column.strategy, self.seeds, self.cap, self.seconds)


def table_text(table: Table, answers: Mapping[Job, Answer]) -> str:
    """Return the table with its title and text."""
    cells: dict[str, Callable[[Table, str, Answer], str]] = {
        "races": lambda _table, _row, answer: found_cell(answer),
        "theirs": lambda _table, _row, answer: found_cell(answer),
        "speed": lambda table, row, answer: speed_cell(answer, stock_rate(table, row, answers)),
        "proofs": lambda _table, _row, answer: proof_cell(answer, broken=False),
        "promises": lambda _table, _row, answer: alarm_cell(answer),
        "9615": lambda _table, _row, answer: found_cell(answer),
        "9615 proofs": lambda _table, row, answer: proof_cell(answer, broken=row != "9615_memory"),
    }
    rows = []
    for program, label in table.programs.items():
        row = [label or program]
        for column in table.columns:
            answer = answers.get(table.job(program, column))
            row.append(column.cannot or ("-" if answer is None else cells[table.name](table, program, answer)))
        rows.append(row)
    return f"## {table.title}\n\n{table.text}\n\n" + markdown(
        ["program", *(column.heading() for column in table.columns)], rows
    )


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |\n" for line in lines)


def found_cell(answer: Answer) -> str:
    """Return the mean number of executions until the first failure; what found nothing counts with what it tried."""
    searches = answer.lines
    if not searches:
        return trouble_text(answer)
    hits = [line for line in searches if line["failure"]]
    cut = searches[-1]["ended"] == "time" or len(searches) < searches[-1]["of"]
    tried = sum(line["executions"] for line in searches)
    if not hits:
        if searches[-1]["ended"] in ENDINGS:
            return f"none in {tried:,}, {ENDINGS[searches[-1]['ended']]}"
        return f"none in {tried:,}" + (" (time)" if cut else "")
    mean = statistics.mean(line["executions"] for line in searches)
    text = f"{mean:,.1f}" if len(searches) > 1 else f"{mean:,.0f}"
    if len(hits) < len(searches):
        text = f"> {text}, {len(hits)} of {len(searches)}"
    return text + (" (time)" if cut else "") + (f"; {answer.trouble}" if answer.trouble else "")


def alarm_cell(answer: Answer) -> str:
    """Return after how many executions a program failed that stock asyncio cannot break."""
    text = found_cell(answer)
    hits = [line for line in answer.lines if line["failure"]]
    if not hits:
        return "-" if answer.lines and not answer.trouble else text
    labels = [line["failure"].partition("[rung ")[2].rstrip("]") for line in hits]
    return f"**alarm**, {text}" + (f" `{labels[0]}`" if labels[0] else "")


def proof_cell(answer: Answer, *, broken: bool) -> str:
    """Return how many executions a proof took, or what came instead."""
    if not answer.lines:
        return trouble_text(answer)
    proof = answer.lines[-1]
    executions = f"{proof['executions']:,}"
    if proof["verdict"] == "violation":
        return f"refuted, {executions}"
    if proof["verdict"] == "proved":
        if proof["claim"].startswith("within"):
            return f"none {proof['claim']}, {executions}"
        if broken:
            return f"**holds**, {executions}" + (f", {proof['claim']}" if proof["claim"].startswith("rung") else "")
        return f"{executions} ({proof['seconds']:.2g} s)"
    if proof["claim"] == "inconclusive":
        return f"inconclusive, {executions}"
    return f"unfinished, {executions}" + ("; `property_holds`" if proof["claim"] == "property_holds" else "")


def speed_cell(answer: Answer, stock: float) -> str:
    """Return schedules per second, and how many times as long as on the stock loop one takes."""
    if not answer.lines or "per_s" not in answer.lines[-1]:
        return trouble_text(answer)
    rate = answer.lines[-1]["per_s"]
    return f"{rate:,.0f}" + (f" (x {stock / rate:,.2g})" if stock and answer.job.peer != "asyncio" else "")


def stock_rate(table: Table, program: str, answers: Mapping[Job, Answer]) -> float:
    """Return the runs per second of the stock loop, 0 when it was not measured."""
    for column in table.columns:
        answer = answers.get(table.job(program, column))
        if column.peer == "asyncio" and answer is not None and answer.lines:
            return float(answer.lines[-1]["per_s"])
    return 0.0


def trouble_text(answer: Answer) -> str:
    """Say why there is no answer."""
    if answer.trouble == "time":
        return f"no answer in {answer.job.seconds:.0f} s"
    return f"fails: {answer.trouble[:80] or 'no answer'}"


def own_text(
    schedulers: Mapping[str, Sequence[dict[str, Any]]], speed: Mapping[str, Sequence[dict[str, Any]]], *, options: str
) -> str:
    """Return our own tables. schedulers: the cells of schedulers.py by program; speed: the tables of speed.py."""
    from benchmarks.schedulers import PUBLISHED, SCHEDULERS, cell_text, published_text

    means = markdown(
        ["program", *SCHEDULERS, *(f"published: {name}" for name in PUBLISHED)],
        [[name, *map(cell_text, cells), *map(published_text, PROGRAMS[name][1])] for name, cells in schedulers.items()],
    )
    return (
        f"## Schedulers\n\n`python benchmarks/schedulers.py {options}`: mean executions until the first failure, "
        "g = 10, beside what the authors of SURW published for the thread originals. `>`: some seeds found nothing and "
        f"count with the cap; `never`: none did; in parentheses: so many seeds in the cell's time.\n\n{means}\n"
        "## Speed of the loop\n\n`python benchmarks/speed.py`: the controlled loop and stock asyncio in turns in one "
        f"process, and a bare controlled loop; the ratios are what holds.\n\n" + "\n".join(map(records, speed.values()))
    )


def records(rows: Sequence[dict[str, Any]]) -> str:
    """Return what a script printed as JSON as a table, with its own headings."""
    shown = [
        ["-" if value is None else value if isinstance(value, str) else f"{value:,}" for value in row.values()]
        for row in rows
    ]
    return markdown([name.replace("_", " ") for name in rows[0]], shown)


def page(tables: Sequence[Table], answers: Mapping[Job, Answer], own: str, *, python: str, reused: bool) -> str:
    """Return the whole page. python: the version that ran all of it. reused: the others answered in an earlier run."""
    versions = ", ".join(peer.requirement.replace("==", " ") for peer in PEERS.values() if peer.requirement)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    text = "\n".join(table_text(table, answers) for table in tables)
    earlier = " What the other tools found, not what is timed, is kept from an earlier run." if reused else ""
    return (
        f"# Benchmarks\n\n`{COMMAND}` makes this page. It ran on CPython {python}, {platform.system()}, "
        f"{os.cpu_count()} cores; the load at the end was {load} (1, 5 and 15 minutes). Times are those of a machine "
        "under that load: compare them within the page. Numbers of executions do not depend on it, except in a cell "
        f"that ended with its time.{earlier}\n\n{FAIRNESS.format(versions=versions)}\n{text}\n{own}"
    )
