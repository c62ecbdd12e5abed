"""The comparison with other tools keeps what needs no network: its plan, its tables, and our own driver."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.peers_plan import RACES, TABLES, THEIRS
from benchmarks.peers_report import (
    Column,
    Table,
    alarm_cell,
    found_cell,
    own_text,
    page,
    proof_cell,
    speed_cell,
    table_text,
)
from benchmarks.peers_run import DRIVERS, PEERS, Answer, Job, ask, keep_answers, read_answers

JOB = Job("detangle", "find", "twostage", seeds=3, cap=500)


def searches(*found, of=3, **options):
    """Return the answer to a question of three seeds, unless the tool needs one search."""
    lines = [
        {"seed": seed, "of": of, "executions": executions, "failure": failure, "ended": ended}
        for seed, (executions, failure, ended) in enumerate(found)
    ]
    return Answer(JOB, lines, **options)


def proof(verdict, executions, claim="any number of delays"):
    """Return the answer to a proof."""
    line = {"verdict": verdict, "executions": executions, "claim": claim, "failure": "", "seconds": 0.25}
    return Answer(JOB, [line])


HIT, MISS, LATE = (4, "AssertionError", "cap"), (500, "", "cap"), (120, "", "time")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (searches(HIT, HIT, (7, "AssertionError", "cap")), "5.0"),
        (searches(HIT, HIT, MISS), "> 169.3, 2 of 3"),
        (searches(MISS, MISS, MISS), "none in 1,500"),
        (searches(MISS, LATE), "none in 620 (time)"),
        (searches(MISS), "none in 500 (time)"),
        (searches((6, "", "exhausted"), of=1), "none in 6, says there is none"),
        (searches((6, "AssertionError", "cap"), of=1), "6"),
        (searches(trouble="time"), "no answer in 10 s"),
        (searches(trouble="ModuleNotFoundError: No module named 'detangle'"),
         "fails: ModuleNotFoundError: No module named 'detangle'"),
    ],
)  # fmt: skip
def test_a_search_says_how_much_it_took_and_how_much_it_tried(answer, text):
    """A mean, what found nothing, and what the time cut off."""
    assert found_cell(answer) == text


def test_an_alarm_is_a_wrong_answer():
    """In bold, and with the label of the rung where there is one."""
    assert alarm_cell(searches(MISS)) == "-"
    assert alarm_cell(searches((2, "AssertionError", "cap"), of=1)) == "**alarm**, 2"
    assert alarm_cell(searches((2, "raised [rung relaxed]", "cap"), of=1)) == "**alarm**, 2 `relaxed`"


def test_a_proof_of_a_broken_program_is_a_wrong_answer():
    """A bound that holds is none."""
    assert proof_cell(proof("proved", 64), broken=False) == "64 (0.25 s)"
    assert proof_cell(proof("proved", 6), broken=True) == "**holds**, 6"
    assert proof_cell(proof("proved", 10, "rung latency"), broken=True) == "**holds**, 10, rung latency"
    assert proof_cell(proof("proved", 6, "within 2 delays"), broken=True) == "none within 2 delays, 6"
    assert proof_cell(proof("violation", 12), broken=True) == "refuted, 12"
    assert proof_cell(proof("unfinished", 1234), broken=True) == "unfinished, 1,234"


def test_speed_is_compared_with_the_stock_loop():
    """Schedules per second, and how many times as long one takes."""
    assert speed_cell(Answer(JOB, [{"per_s": 2000.0, "executions": 800}]), 5000.0) == "2,000 (x 2.5)"


def test_a_table_has_a_cell_for_what_a_tool_cannot_do():
    """The reason stands there, and the tool is not asked."""
    columns = [Column("detangle", "pct:3", "pct:3"), Column("simloop", cannot="no exhaustive search")]
    table = Table("races", "Title", "Text.", {"twostage": ""}, columns, "find", seeds=3, cap=500, seconds=10.0)
    (job,) = table.jobs()
    assert table_text(table, {job: searches(HIT, HIT, HIT)}) == (
        "## Title\n\nText.\n\n| program | detangle, pct:3 | simloop |\n| --- | --- | --- |\n"
        "| twostage | 4.0 | no exhaustive search |\n"
    )


@pytest.mark.slow
def test_the_page_has_every_table_and_the_command():
    """Also when nothing was answered."""
    cell = {"mean": 4.0, "missed": 0, "cap": 500, "seeds": 3, "of": 20}
    row = {"program": "one turn", "stock_us": 1.5, "ratio": 2.0, "per_s": None}
    own = own_text({"twostage": [cell] * 8}, {"schedules": [row]}, options="--cap 500")
    text = page(TABLES, {}, own, python="3.13.0", reused=False)
    assert "`python benchmarks/peers.py --write docs/benchmarks.md` makes this page. It ran on CPython 3.13.0" in text
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        *(table.title for table in TABLES),
        "Schedulers",
        "Speed of the loop",
    ]
    assert f"| twostage | {'4.0 (3) | ' * 8}8 | 13 | 15 | 464 |" in text
    assert "| program | stock us | ratio | per s |\n| --- | --- | --- | --- |\n| one turn | 1.5 | 2.0 | - |\n" in text


def test_the_written_page_has_the_tables_of_the_plan():
    """With their texts, their rows and their columns."""
    written = (peers.ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for table in TABLES:
        assert f"## {table.title}\n\n{table.text}\n\n| program | {table.columns[0].heading()} |" in written
        assert all(f"\n| {label or name} | " in written for name, label in table.programs.items())


def test_a_part_of_the_tables_can_be_asked_for():
    """Only the columns and rows that are named; a table without any is left out."""
    (table,) = peers.selected(TABLES, peers=["simloom"], programs=["twostage"])
    assert table.jobs() == [Job("simloom", "find", "twostage", "pct:auto", RACES.seeds, RACES.cap, RACES.seconds)]


def test_what_others_answered_is_kept(tmp_path):
    """Ours is asked anew, and so is what is timed."""
    path = tmp_path / "answers.json"
    answers = [searches(HIT), Answer(Job("harness", "find", "twostage")), Answer(Job("detangle", "speed", "grid_2x3"))]
    keep_answers(path, {answer.job: answer for answer in answers})
    keep_answers(path, {JOB: searches(MISS)})
    assert read_answers(path) == {JOB: searches(MISS)}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--peer", "nobody"], "peers.py: unknown peer 'nobody' (known: harness, detangle, "),
        (["--program", "nothing"], "peers.py: unknown program 'nothing' (known: grid_2x3, "),
        (["--table", "nothing"], "peers.py: unknown table 'nothing' (known: speed, races, "),
        (["--seeds", "0"], "peers.py: --seeds, --cap and --workers are at least 1"),
        (["--write", "x.md", "--peer", "harness"], "peers.py: --write makes the whole page: leave --peer, --program"),
        (["--peer", "asyncio", "--program", "twostage"], "peers.py: nothing to ask: no table has these"),
    ],
)
def test_wrong_usage_is_one_line(arguments, line, capsys):
    """Before anything is installed; status 2."""
    assert peers.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(line)
    assert printed.err.count("\n") == 1


@pytest.mark.slow
def test_without_a_network_it_is_one_line(tmp_path, capsys, monkeypatch):
    """Nothing half made is left."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    arguments = ["--peer", "detangle", "--program", "twostage", "--work", str(tmp_path / "work")]
    assert peers.main([*arguments, "--python", sys.executable]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("peers.py: detangle: cannot make its environment, is the package index reachable? ")
    assert printed.err.count("\n") == 1
    assert list((tmp_path / "work").iterdir()) == []


CHECKS = """
import asyncio
from cases import CASES, PROMISES, THEIRS, gathered, nothing
from benchmarks.peers_plan import TABLES
assert {name for table in TABLES for name in table.programs} == set(CASES)
for name, case in CASES.items():
    if case.remote is None and name not in THEIRS:
        asyncio.run(case.whole(None)())
        if case.parts is not None:
            asyncio.run(gathered(case.parts)())
"""
REWRITTEN = """
from pathlib import Path
from attributes import load_with_attributes
programs = load_with_attributes("benchmarks.programs", Path("benchmarks/programs.py"))
theirs = load_with_attributes("theirs", Path("benchmarks/peers/theirs.py"))
load_with_attributes("cases", Path("benchmarks/peers/cases.py"))
from cases import RACES
assert theirs.starvation.__code__.co_cellvars == ("shared",)
assert programs.reorder(1).__code__.co_cellvars == ("set_both", "shared")
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", [CHECKS, REWRITTEN + CHECKS], ids=["plain", "with attributes"])
def test_every_program_passes_on_stock_asyncio(code):
    """Whole and in parts, and so do the programs whose variables are attributes."""
    path = f"import sys; sys.path[:0] = [{str(DRIVERS)!r}, {str(peers.ROOT)!r}]\n"
    done = subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True, cwd=peers.ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("program", THEIRS.programs)
def test_what_the_others_show_is_found(program):
    """The failure, and not one of the driver."""
    found = ask(Path(sys.executable), Job("harness", "find", program, seeds=2, cap=50))
    assert [(bool(line["failure"]), line["executions"] <= 15) for line in found.lines] == [(True, True)] * 2
    kind = "deadlock" if program == "philosophers" else "raised AssertionError"
    assert all(line["failure"].startswith(kind) for line in found.lines), found.lines


@pytest.mark.slow
def test_our_own_driver_answers():
    """What it finds, what it proves, and how fast it is."""
    python = Path(sys.executable)
    found = ask(python, Job("harness", "find", "twostage", seeds=2, cap=100))
    assert [(bool(line["failure"]), line["executions"] <= 20) for line in found.lines] == [(True, True)] * 2
    proved = ask(python, Job("harness", "prove", "locks_3", cap=1000))
    assert [(line["verdict"], line["executions"] <= 12) for line in proved.lines] == [("proved", True)]
    stock = ask(python, Job("asyncio", "speed", "grid_2x3", seconds=0.1))
    assert [line["per_s"] > 0 for line in stock.lines] == [True]
    assert ask(python, Job("harness", "find", "unknown")).trouble.startswith(
        "drive_harness.py: error: argument program"
    )


def test_each_tool_has_a_driver():
    """And each driver a tool."""
    assert {f"drive_{name}.py" for name in PEERS} == {path.name for path in DRIVERS.glob("drive_*.py")}
