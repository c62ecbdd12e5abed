"""Compare harness with other tools that control asyncio's schedules: the same programs, the same machine, one page.

Owns the plan: which tool is asked what, and the page. Must not know how a tool is driven (benchmarks/peers/) or run.

    python benchmarks/peers.py                                       # all tables, as Markdown
    python benchmarks/peers.py --peer harness,detangle --program twostage,locks_3 --seeds 5
    python benchmarks/peers.py --write docs/benchmarks.md            # with the tables of schedulers.py and speed.py

Each tool has an environment of its own in --work, made once. Exit status: 0, or 2 for wrong usage or no network.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import peers_run
from benchmarks.peers_plan import RACES, TABLES
from benchmarks.peers_report import Table, own_text, page, table_text
from benchmarks.peers_run import PEERS, ROOT, Answer, CannotPrepareError, Job
from benchmarks.programs import PROGRAMS
from harness.adapters.uv import find_uv
from harness.model.errors import UsageError

# simloom, simloop and seedloop need 3.12 or newer.
PYTHONS = ("3.13", "3.12", "3.14")

OWN_CAP = 500
OWN_CELL_S = 10.0
OWN_LIMIT_S = 900.0


def selected(tables: Iterable[Table], *, peers: Sequence[str], programs: Sequence[str]) -> list[Table]:
    """Return the tables with only the columns and rows that are asked for; those with none are left out."""
    found = []
    for table in tables:
        columns = [column for column in table.columns if not peers or column.peer in peers]
        rows = {name: label for name, label in table.programs.items() if not programs or name in programs}
        if rows and any(not column.cannot for column in columns):
            found.append(replace(table, columns=columns, programs=rows))
    return found


def ask_all(
    tables: Sequence[Table], interpreters: dict[str, Path], known: dict[Job, Answer], *, workers: int
) -> dict[Job, Answer]:
    """Ask the drivers what is not ``known``; what measures speed runs alone, the rest ``workers`` at a time."""
    jobs = dict.fromkeys(job for table in tables for job in table.jobs())
    answers = {job: known[job] for job in jobs if job in known}
    left = [job for job in jobs if job not in known]
    alone = [job for job in left if job.task == "speed"]
    others = [job for job in left if job.task != "speed"]
    for some, at_a_time in ((alone, 1), (others, workers)):
        with workers_of(at_a_time) as pool:
            for answer in pool.map(lambda job: peers_run.ask(interpreters[job.peer], job), some):
                answers[answer.job] = answer
                progress(f"{len(answers)} of {len(jobs)}: {answer.job.peer} {answer.job.task} {answer.job.program}")
    progress("")
    return answers


@contextmanager
def workers_of(number: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool that asks ``number`` drivers at a time; an interrupt ends their processes."""
    with ThreadPoolExecutor(number) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            peers_run.end_all()
            raise


def progress(text: str) -> None:
    """Show how far the run is, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def own_tables(interpreter: Path, *, seeds: int, workers: int) -> str:
    """Return our own two tables, made by schedulers.py and speed.py in the same environment as the rest."""

    def run(script: str, *arguments: str) -> Any:
        command = [str(interpreter), f"benchmarks/{script}", "--json", *arguments]
        done, trouble = peers_run.run_process(command, limit_s=OWN_LIMIT_S)
        if trouble:
            raise CannotPrepareError(f"{script}: {trouble}")
        return json.loads(done)

    speed = run("speed.py")
    options = ["--cap", str(OWN_CAP), "--seeds", str(seeds), "--seconds", str(OWN_CELL_S)]
    with workers_of(workers) as pool:
        rows = pool.map(lambda name: run("schedulers.py", *options, "--program", name), PROGRAMS)
        return own_text(dict(zip(PROGRAMS, rows, strict=True)), speed, options=" ".join(options))


def split(text: str, known: Iterable[str], what: str) -> list[str]:
    """Return the names in ``text``; raises UsageError for one that is not known."""
    names = [name for name in text.split(",") if name]
    known = list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown {what} {name!r} (known: {', '.join(known)})")
    return names


def find_python(given: str) -> str:
    """Return an interpreter that all tools support; raises UsageError for none."""
    if given:
        return given
    if sys.version_info >= (3, 12):
        return sys.executable
    command = [sys.executable, str(ROOT / "scripts" / "find_pythons.py"), *PYTHONS]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    if not found:
        raise UsageError(f"Python {', '.join(PYTHONS)} was not found, and some tools need it: give --python PATH")
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; wrong usage is one line and status 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--program", default="", help="names of rows")
    parser.add_argument("--table", default="", help=f"of {', '.join(table.name for table in TABLES)}")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cap", type=int, default=500, help="executions of one search for a race")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "peers", help="where environments are kept")
    parser.add_argument("--python", default="", help="interpreter for all environments, 3.12 or newer")
    parser.add_argument("--reuse", action="store_true", help="keep what the others found before, not what is timed")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--write", type=Path, help="write the whole page there")
    parser.add_argument("--json", action="store_true", help="print the drivers' answers")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the tables."""
    options = parse(arguments)
    try:
        return run(options)
    except (UsageError, CannotPrepareError) as error:
        print(f"peers.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def run(options: argparse.Namespace) -> int:
    """Make environments, ask, and print."""
    peers = split(options.peer, PEERS, "peer")
    programs = split(options.program, dict.fromkeys(name for table in TABLES for name in table.programs), "program")
    names = split(options.table, [table.name for table in TABLES], "table")
    if min(options.seeds, options.cap, options.workers) < 1:
        raise UsageError("--seeds, --cap and --workers are at least 1")
    if options.write and (peers or programs or names):
        raise UsageError("--write makes the whole page: leave --peer, --program and --table out")
    races = replace(RACES, seeds=options.seeds, cap=options.cap)
    tables = [races if table is RACES else table for table in TABLES if not names or table.name in names]
    tables = selected(tables, peers=peers, programs=programs)
    if not tables:
        raise UsageError("nothing to ask: no table has these peers, programs and tables together")
    python, uv = find_python(options.python), find_uv()
    wanted = dict.fromkeys(job.peer for table in tables for job in table.jobs())
    interpreters = {
        name: peers_run.make_environment(uv, python, options.work.resolve(), PEERS[name]) for name in wanted
    }
    kept = options.work / "answers.json"
    known = peers_run.read_answers(kept) if options.reuse else {}
    answers = ask_all(tables, interpreters, known, workers=options.workers)
    peers_run.keep_answers(kept, answers)
    if options.json:
        print(json.dumps([asdict(answer) for answer in answers.values()], indent=2))
        return 0
    if not options.write:
        print("\n".join(table_text(table, answers) for table in tables))
        return 0
    own = own_tables(interpreters["harness"], seeds=options.seeds, workers=options.workers)
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    options.write.write_text(page(tables, answers, own, python=version, reused=bool(known)), encoding="utf-8")
    print(f"wrote {options.write}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
