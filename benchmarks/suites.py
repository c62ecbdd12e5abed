"""Other people's suites, unmodified, under the controlled loop.

Owns where each suite comes from and the table; must not know pytest's inside.

Each suite is fetched from its source distribution and runs on the stock selector loop, on ours in default order, and
under other ``exact`` schedules, real I/O allowed. A test counts when it passes on the stock loop and a loop of the
injected factory ran during it. A test that fails under another schedule is then looked for on the stock loop in a
process that is held up now and then: where it fails as well, it depends on the machine's speed.

    python benchmarks/suites.py                              # all suites, 20 schedules per test
    python benchmarks/suites.py --suite janus,aiojobs --schedules 5 --list-bad
    python benchmarks/suites.py --reproductions              # benchmarks/reproductions, on the stock loop

Exit status: 0 nothing fails that the stock loop rules out, 1 something does, 2 a suite cannot be prepared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from suites_run import Limits, Result, run_tests

HERE = Path(__file__).resolve().parent
REPRODUCTIONS = HERE / "reproductions"
# How often a failure under another schedule is looked for on the stock loop.
PAUSED_RUNS = 20
ASYNCIO = ("-p", "pytest_asyncio.plugin")
AUTO = (*ASYNCIO, "-o", "addopts=", "-o", "asyncio_mode=auto")
TOOLS = ("pytest==9.2.0", "pytest-asyncio==1.5.0", "pytest-timeout==2.4.0", "pytest-mock==3.17.0")


@dataclass(frozen=True, slots=True)
class Suite:
    """Where a suite comes from and how its tests are run.

    source: the source distribution with the tests. install: what the tests need, the package under test included; when
    it is not, it is imported from the sources. keep: the paths of the sources that are unpacked, all when empty. cwd:
    where in them pytest starts. args: plugins and options, because plugins are not loaded by themselves.
    """

    source: str
    paths: tuple[str, ...] = ("tests",)
    install: tuple[str, ...] = ()
    args: tuple[str, ...] = ASYNCIO
    keep: tuple[str, ...] = ()
    cwd: str = "."
    env: dict[str, str] = field(default_factory=dict)


AGENT_FRAMEWORK = Suite(
    # The source distributions of agent-framework-core have no tests from 1.0.0 on; the last of agent-framework, the
    # package that gathers them, that has the whole repository in it is 1.13.0.
    source="agent-framework==1.13.0",
    install=("agent-framework-core==1.13.0", "mcp>=1.24,<2", "opentelemetry-sdk", "graphviz", "openai"),
    args=(*ASYNCIO, "-p", "pytest_timeout"),
    keep=("packages/core/tests", "packages/core/pyproject.toml"),
    cwd="packages/core",
    paths=("tests/workflow",),
)
LANGGRAPH_TESTS = (
    "config_async",
    "graph_callbacks",
    "interruption",
    "large_cases_async",
    "parent_command_async",
    "pregel_async",
    "retry",
    "runtime",
    "subgraph_persistence_async",
    "time_travel_async",
)
SUITES = {
    "agent_framework": AGENT_FRAMEWORK,
    # ... and the same tests on the release that our scenarios use, where what they test changed since
    "agent_framework_1.23": Suite(
        source=AGENT_FRAMEWORK.source,
        install=("agent-framework-core==1.23.0", "mcp", "opentelemetry-sdk", "graphviz", "openai"),
        args=AGENT_FRAMEWORK.args,
        keep=AGENT_FRAMEWORK.keep,
        cwd=AGENT_FRAMEWORK.cwd,
        paths=AGENT_FRAMEWORK.paths,
    ),
    "langgraph": Suite(
        source="langgraph==1.2.11",
        install=(
            "langgraph==1.2.11",
            "langgraph-checkpoint==4.2.0",
            "langgraph-checkpoint-sqlite==3.1.1",
            "langgraph-checkpoint-postgres==3.1.2",
            "langgraph-prebuilt==1.1.0",
            "langgraph-sdk",
            "httpx",
            "psycopg-pool",
            "psycopg[binary]",
            "pycryptodome",
            "redis",
            "syrupy",
        ),
        args=("-p", "anyio", "-p", "pytest_mock", "-p", "syrupy", "-o", "addopts="),
        keep=("tests", "pyproject.toml"),
        paths=tuple(f"tests/test_{name}.py" for name in LANGGRAPH_TESTS),
        # its timeouts and its tests compare time.monotonic() and perf_counter() with what asyncio.sleep takes
        env={"NO_DOCKER": "true", "LANGSMITH_TRACING": "false", "SUITES_CLOCKS": "1"},
    ),
    "anyio": Suite(
        source="anyio==4.16.0",
        install=("anyio==4.16.0", "psutil", "trustme", "truststore", "blockbuster", "exceptiongroup", "hypothesis"),
        args=("-k", "not uvloop and not trio", "-m", "not network", "--deselect", "tests/test_pytest_plugin.py"),
    ),
    "asgiref": Suite(source="asgiref==3.13.0", args=(*ASYNCIO, "--ignore=tests/test_benchmark_local.py")),
    "aiosqlite": Suite(source="aiosqlite==0.22.1", args=(), paths=("aiosqlite/tests/smoke.py",)),
    "aiofiles": Suite(source="aiofiles==25.1.0", install=("aiofiles==25.1.0",)),
    "aiojobs": Suite(source="aiojobs==1.4.0", args=AUTO, paths=("tests/test_scheduler.py", "tests/test_job.py")),
    "janus": Suite(
        source="janus==2.0.0",
        args=(*ASYNCIO, "-o", "addopts="),
        paths=("tests/test_async.py", "tests/test_mixed.py", "tests/test_sync.py"),
    ),
    "aiotools": Suite(
        source="aiotools==2.2.4",
        install=("aiotools==2.2.4", "typing_extensions"),
        # its server tests fork the process that pytest runs in
        args=(*ASYNCIO, "--ignore=tests/test_server.py", "--ignore=tests/test_fork.py"),
    ),
    "async_lru": Suite(
        source="async-lru==2.4.0",
        args=(*ASYNCIO, "-p", "pytest_timeout", "-o", "addopts=", "-o", "asyncio_default_fixture_loop_scope=function"),
    ),
    "tenacity": Suite(
        source="tenacity==9.2.1", args=(), install=("tornado", "typeguard"), paths=("tests/test_asyncio.py",)
    ),
    "async_timeout": Suite(source="async-timeout==5.0.1", args=AUTO),
    "uvloop": Suite(
        # its functional tests run on asyncio, too; the sources are not unpacked, so that the wheel is imported
        source="uvloop==0.23.0",
        install=("uvloop==0.23.0", "pyOpenSSL", "psutil"),
        args=("-k", "AIO", "--capture=no", "--assert=plain"),
        keep=("tests",),
        env={"SUITES_CLOCKS": "1"},  # it compares time.monotonic() with what call_later takes
    ),
}


class CannotPrepareError(Exception):
    """A suite's sources or packages could not be had."""


class Prepared:
    """A suite with its sources and an environment of its own, made once and kept in the work directory."""

    def __init__(self, name: str, suite: Suite, work: Path, python: str) -> None:
        self.name = name
        self.suite = suite
        self.work = work
        self.sources = work / "sources" / name
        self.env = work / "environments" / f"{name}-{python_tag(python)}"
        self._base_python = python

    @property
    def python(self) -> str:
        """The interpreter of the environment."""
        return str(self.env / "bin" / "python")

    def prepare(self) -> None:
        """Fetch what is not there yet; raises CannotPrepareError."""
        wanted = json.dumps([self.suite.source, *TOOLS, *self.suite.install])
        stamp = self.env / "ready"
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(self.env, ignore_errors=True)
            self._call(self._base_python, "-m", "venv", str(self.env))
            self._call(self.python, "-m", "pip", "install", "-q", *TOOLS, *self.suite.install)
            stamp.write_text(wanted)
        stamp = self.sources / "ready"
        if not stamp.exists() or stamp.read_text() != self.suite.source:
            shutil.rmtree(self.sources, ignore_errors=True)
            self._unpack(self._download())
            stamp.write_text(self.suite.source)

    def _download(self) -> Path:
        folder = self.work / "downloads"
        folder.mkdir(parents=True, exist_ok=True)
        name, _, version = self.suite.source.partition("==")
        endings = tuple(f"{spelling}-{version}.tar.gz" for spelling in (name, name.replace("-", "_")))
        if not any((folder / ending).exists() for ending in endings):
            no_wheel = ("download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder))
            self._call(self.python, "-m", "pip", *no_wheel, self.suite.source)
        return next(folder / ending for ending in endings if (folder / ending).exists())

    def _unpack(self, archive: Path) -> None:
        """Unpack without the top folder, and only what is kept."""
        self.sources.mkdir(parents=True)
        with tarfile.open(archive) as tar:
            members = []
            for member in tar.getmembers():
                member.name = member.name.partition("/")[2]
                if member.name and (not self.suite.keep or member.name.startswith(self.suite.keep)):
                    members.append(member)
            tar.extractall(self.sources, members=members, filter="data")

    def _call(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
            raise CannotPrepareError(
                f"{self.name}: cannot prepare {self.suite.source}, is the package index reachable? "
                f"{lines[-1] if lines else 'no message'}"
            )

    def run(self, mode: str, *, schedule: int = 0, limits: Limits, only: set[str] | None = None) -> dict[str, Result]:
        """Run the suite's tests under the loop that ``mode`` names."""
        log = self.work / "results" / f"{self.name}-{mode}-{schedule}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON"))}
        env |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)]),
            "SUITES_MODE": mode,
            "SUITES_SCHEDULE": str(schedule),
            **self.suite.env,
        }
        options = ("-p", "suites_plugin", "-p", "no:cacheprovider", "-q", "--no-header", "--tb=short")
        # tests by name, when few are wanted: collecting a suite takes longer than they do
        paths = sorted(only) if only is not None and len(only) <= 60 else self.suite.paths
        command = [self.python, "-m", "pytest", *options, *self.suite.args, *paths]
        results = run_tests(command, env=env, cwd=self.sources / self.suite.cwd, log=log, limits=limits)
        return results if only is None else {test: results[test] for test in only if test in results}

    def run_script(self, script: Path, *, idle: bool) -> str:
        """Run a script on the stock loop; return what it raised, or "". idle: ``time.sleep`` holds nothing up."""
        code = f"import runpy, sys, time; {'time.sleep = lambda s: None; ' if idle else ''}"
        code += "runpy.run_path(sys.argv[1], run_name='__main__')"
        done = subprocess.run(
            [self.python, "-c", code, str(script)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(self.sources)},
        )
        lines = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
        return "" if done.returncode == 0 else (lines or ["no message"])[-1]


@dataclass(slots=True)
class Row:
    """A line of the table, and what failed: for each test its first message and the schedules."""

    suite: str
    version: str
    stock: int = 0
    passed: int = 0
    default_bad: dict[str, str] = field(default_factory=dict)
    exact_bad: dict[str, list[str]] = field(default_factory=dict)
    reproduced: dict[str, str] = field(default_factory=dict)
    unsteady: list[str] = field(default_factory=list)
    schedules: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        """Return the line."""
        return (
            f"{self.suite:21} {self.version:9} {self.stock:6} {self.passed:6} {self.schedules:10} "
            f"{len(self.exact_bad):9} {len(self.reproduced):9} {len(self.unsteady):9} {self.seconds:8.0f}"
        )


COLUMNS = ("stock", "ours", "schedules", "failures", "on stock", "unsteady")
WIDTHS = {"stock": 6, "ours": 6, "schedules": 10, "failures": 9, "on stock": 9, "unsteady": 9, "seconds": 8}
HEADER = f"{'suite':21} {'version':9} " + " ".join(f"{name:>{width}}" for name, width in WIDTHS.items())


def failures(prepared: Prepared, row: Row, keep: set[str], mode: str, schedule: int, limits: Limits) -> dict[str, str]:
    """Run one mode; return the tests that fail twice. One that fails once is noted as unsteady."""
    results = prepared.run(mode, schedule=schedule, limits=limits)
    nothing = Result("notrun")
    bad = {test: results.get(test, nothing) for test in keep if results.get(test, nothing).outcome != "pass"}
    if bad and len(bad) <= 60:
        again = prepared.run(mode, schedule=schedule, limits=limits, only=set(bad))
        row.unsteady += [f"{mode} {schedule}: {test}" for test in bad if again.get(test, nothing).outcome == "pass"]
        bad = {test: result for test, result in bad.items() if again.get(test, nothing).outcome != "pass"}
    return {test: f"{result.outcome}: {result.message}" for test, result in bad.items()}


def measure(prepared: Prepared, *, first: int, schedules: int, limits: Limits) -> Row:
    """Run one suite in every mode."""
    row = Row(prepared.name, prepared.suite.source.partition("==")[2], schedules=schedules)
    began = time.monotonic()
    cached = prepared.work / "results" / f"{prepared.env.name}-stock.json"
    if cached.exists() and (prepared.env / "ready").stat().st_mtime < cached.stat().st_mtime:
        stock = {test: Result(**result) for test, result in json.loads(cached.read_text()).items()}
    else:
        stock = prepared.run("stock", limits=limits)
        cached.write_text(json.dumps({test: asdict(result) for test, result in stock.items()}))
    keep = {test for test, result in stock.items() if result.outcome == "pass" and result.runs > 0}
    row.stock = len(keep)
    row.default_bad = failures(prepared, row, keep, "default", 0, limits)
    row.passed = len(keep) - len(row.default_bad)
    sound = keep - set(row.default_bad)
    for schedule in range(first, first + schedules):
        for test, message in failures(prepared, row, sound, "exact", schedule, limits).items():
            row.exact_bad.setdefault(test, []).append(f"{schedule}: {message}")
    reproduce(prepared, row, limits)
    row.seconds = time.monotonic() - began
    return row


def reproduce(prepared: Prepared, row: Row, limits: Limits) -> None:
    """Look for the same failures on the stock loop, in a process that is held up now and then."""
    for attempt in range(PAUSED_RUNS):
        left = set(row.exact_bad) - set(row.reproduced)
        if not left:
            return
        for test, result in prepared.run("paused", schedule=attempt, limits=limits, only=left).items():
            if result.outcome in ("fail", "error"):
                row.reproduced[test] = f"{attempt}: {result.message}"


def run_reproductions(prepared: list[Prepared]) -> int:
    """Run the scripts of the suites on the stock loop: each fails, and passes when ``time.sleep`` holds nothing up."""
    status = 0
    for script in sorted(REPRODUCTIONS.glob("*.py")):
        for one in (one for one in prepared if script.stem.startswith(one.name)):
            error = one.run_script(script, idle=False)
            control = one.run_script(script, idle=True)
            good = bool(error) and not control
            says = f"fails on an idle machine, too: {control}" if control else error or "it passes"
            print(f"{script.stem:30} {'reproduced' if good else 'NOT REPRODUCED':14}  {says[:100]}", flush=True)
            status = status if good else 1
    return status


def list_bad(row: Row) -> None:
    """Print every test that failed, with the schedules under which it did."""
    for test, message in sorted(row.default_bad.items()):
        print(f"    default order  {test}\n        {one_line(message)}")
    for test, messages in sorted(row.exact_bad.items()):
        numbers = ",".join(message.partition(":")[0] for message in messages)
        print(f"    exact {numbers}  {test}\n        {one_line(messages[0].partition(': ')[2])}")
        if test in row.reproduced:
            print(f"        on the stock loop, paused {one_line(row.reproduced[test])}")
    for test in row.unsteady:
        print(f"    unsteady, passed when it ran again: {test}")


def one_line(text: str) -> str:
    """Return ``text`` on one line of at most 200 characters."""
    return " | ".join(text.split("\n"))[:200]


def python_tag(python: str) -> str:
    """Return the version of an interpreter, such as 3.11.7."""
    return subprocess.run(
        [python, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True
    ).stdout.strip()


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default=",".join(SUITES), help="names, separated by commas")
    parser.add_argument("--schedules", type=int, default=20, metavar="N", help="exact schedules per test")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first schedule")
    parser.add_argument("--work", type=Path, default=HERE.parent / "build" / "suites", metavar="DIR")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    parser.add_argument("--prepare", action="store_true", help="only fetch what the suites need")
    parser.add_argument("--reproductions", action="store_true", help="run the scripts that show failures on stock")
    parser.add_argument("--list-bad", action="store_true", help="name the tests that fail")
    options = parser.parse_args()
    unknown = set(options.suite.split(",")) - set(SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))} (there are: {', '.join(SUITES)})")
    return options


def main() -> int:
    """Run what the command line asks for."""
    options = arguments()
    work = options.work.resolve()
    (work / "results").mkdir(parents=True, exist_ok=True)
    names = options.suite.split(",")
    prepared = [Prepared(name, SUITES[name], work, options.python) for name in names]
    try:
        for one in prepared:
            one.prepare()
    except CannotPrepareError as error:
        print(error, file=sys.stderr)
        return 2
    if options.prepare:
        return 0
    if options.reproductions:
        return run_reproductions(prepared)
    print(f"Python {python_tag(options.python)}\n{HEADER}", flush=True)
    bad = False
    for one in prepared:
        row = measure(one, first=options.first, schedules=options.schedules, limits=Limits())
        print(row.line(), flush=True)
        if options.list_bad:
            list_bad(row)
        bad = bad or bool(row.default_bad or set(row.exact_bad) - set(row.reproduced))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
