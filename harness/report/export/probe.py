"""Runs of an exported file on the stock loop, each in a process of its own.

Owns the child process and what its output means; must not know what the file is about.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Probe:
    """How a file did. fails: its own assertion failed, nothing else. detail: one line. passes: nothing failed."""

    fails: bool
    detail: str
    passes: bool = False


FAILS_WITH = ("AssertionError", "assert ", "BUG: ")


def probe(
    text: str,
    *,
    script: bool = False,
    fails_with: Sequence[str] = FAILS_WITH,
    path: Sequence[Path] = (),
    python: Path = Path(sys.executable),
) -> Probe:
    """Run ``text`` once: a test under pytest without any plug-in, a script by itself.

    fails_with: how the failure that is meant begins. path: folders from which the program imports.
    python: the interpreter.
    """
    with tempfile.TemporaryDirectory(prefix="export-") as folder:
        file = Path(folder) / "test_exported.py"
        file.write_text(text, encoding="utf-8")
        command = [str(python), str(file)]
        if not script:
            command[1:1] = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                cwd=folder,
                check=False,
                env={
                    **os.environ,
                    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                    "PYTEST_ADDOPTS": "",
                    "PYTHONPATH": os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")]).strip(
                        os.pathsep
                    ),
                },
            )
        except subprocess.TimeoutExpired:
            return Probe(False, f"it did not end within {TIMEOUT_S} s")
    output = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode == 0:
        return Probe(False, "it passes there", passes=True)
    # pytest marks the lines of an error with E; a script says BUG, or prints the error last
    said = [line[1:].strip() for line in output if line.startswith("E ")]
    said = said or [line for line in output if line.startswith("BUG: ")] or output[-1:]
    if said and said[0].startswith(tuple(fails_with)):
        return Probe(True, said[0])
    if internal := [line for line in output if line.startswith("INTERNALERROR> ")]:
        return Probe(False, f"pytest itself ends with {internal[-1].removeprefix('INTERNALERROR> ')}")
    return Probe(False, f"it ends in another way: {said[0] if said else f'status {done.returncode}'}")
