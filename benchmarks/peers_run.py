"""The tools that are compared, an environment for each, and the processes that drive them.

Owns what is installed and how long a process may take; must not know what the tables look like. A driver answers with
lines of JSON, so that one which is ended by its limit has still said what it found before.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DRIVERS = ROOT / "benchmarks" / "peers"
FRAMEWORK = "agent-framework-core==1.23.0"
# What a process may take beyond the limit that its driver knows: imports, and the execution that is under way.
GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool. requirement: what is installed, beside the framework of #9615; "" for ours, which is not installed."""

    name: str
    requirement: str

    def requirements(self) -> list[str]:
        """Return what goes into its environment."""
        if self.name == "harness":
            with (ROOT / "pyproject.toml").open("rb") as file:
                return [*tomllib.load(file)["project"]["dependencies"], FRAMEWORK]
        return [self.requirement, FRAMEWORK] if self.requirement else [FRAMEWORK]


PEERS = {
    peer.name: peer
    for peer in (
        Peer("harness", ""),
        Peer("detangle", "detangle==0.1.0"),
        Peer("simloom", "simloom==0.5.0"),
        Peer("simloop", "simloop==0.2.2"),
        Peer("frontrun", "frontrun==0.7.0"),
        Peer("seedloop", "seedloop==0.4.1"),
        Peer("asyncio", ""),
    )
}


@dataclass(frozen=True, slots=True)
class Job:
    """One question to one driver."""

    peer: str
    task: str
    program: str
    strategy: str = ""
    seeds: int = 1
    cap: int = 1
    seconds: float = 10.0

    def arguments(self) -> list[str]:
        """Return the driver's command line."""
        return [
            *(self.task, self.program, "--strategy", self.strategy, "--seeds", str(self.seeds)),
            *("--cap", str(self.cap), "--seconds", str(self.seconds)),
        ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a driver said. trouble: why it said no more: "time", or the last line of its error output."""

    job: Job
    lines: list[dict[str, Any]] = field(default_factory=list)
    trouble: str = ""


def keep_answers(path: Path, answers: Mapping[Job, Answer]) -> None:
    """Add the answers to those that ``path`` holds."""
    kept = [asdict(answer) for answer in {**_answers_in(path), **answers}.values()]
    path.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def read_answers(path: Path) -> dict[Job, Answer]:
    """Return what the other tools answered in earlier runs; without ours, which changes, and what is timed."""
    return {job: kept for job, kept in _answers_in(path).items() if job.peer != "harness" and job.task == "find"}


def _answers_in(path: Path) -> dict[Job, Answer]:
    if not path.exists():
        return {}
    kept = [Answer(Job(**item.pop("job")), **item) for item in json.loads(path.read_text(encoding="utf-8"))]
    return {answer.job: answer for answer in kept}


class CannotPrepareError(Exception):
    """An environment could not be made."""


def make_environment(uv: str, python: str, work: Path, peer: Peer) -> Path:
    """Return the interpreter of the environment of ``peer`` in ``work``, made now unless it is there.

    Raises CannotPrepareError, and leaves nothing half made.
    """
    folder = work / peer.name
    stamp = folder / "ready"
    wanted = json.dumps([python, *peer.requirements()])
    interpreter = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted:
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _install(peer, [uv, "venv", "--quiet", "--no-project", "--python", python, str(folder)])
        _install(peer, [uv, "pip", "install", "--quiet", "--python", str(interpreter), *peer.requirements()])
        stamp.write_text(wanted)
    finally:
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
    return interpreter


def _install(peer: Peer, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip(" ×├╰─▶") for line in done.stderr.splitlines() if line.strip()]
        raise CannotPrepareError(
            f"{peer.name}: cannot make its environment, is the package index reachable? {' '.join(lines)[:200]}"
        )


def ask(interpreter: Path, job: Job) -> Answer:
    """Run a driver and return its answer; the process and what it started are ended at its limit."""
    command = [str(interpreter), str(DRIVERS / f"drive_{job.peer}.py"), *job.arguments()]
    lines, trouble = run_json_lines(command, limit_s=job.seconds * (4 if job.task == "speed" else 1) + GRACE_S)
    return Answer(job, lines, trouble)


def run_json_lines(command: Sequence[str], *, limit_s: float) -> tuple[list[dict[str, Any]], str]:
    """Run ``command`` and return its lines of JSON, and "" or what went wrong."""
    out, trouble = run_process(command, limit_s=limit_s)
    lines = [line for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
    return [json.loads(line) for line in lines], trouble


def run_process(command: Sequence[str], *, limit_s: float) -> tuple[str, str]:
    """Run ``command`` and return its output, and "" or what went wrong: "time", or its last line of errors."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
    env |= {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT, start_new_session=True
    )
    _live.add(process)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return process.communicate()[0], "time"
    finally:
        _live.discard(process)
    if process.returncode:
        return out, (err.strip().splitlines() or [f"status {process.returncode}"])[-1]
    return out, ""


_live: set[subprocess.Popen[str]] = set()


def end_all() -> None:
    """End every process that runs, after an interrupt."""
    for process in list(_live):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
