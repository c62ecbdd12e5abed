"""Environments with one release of one package each, made by uv and kept in a cache.

Owns their folders, and the one line that says why one cannot be made; must not know what runs in them.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.model.errors import UsageError

# What the error of a registry that does not answer says, and no other error of uv (0.5 to 0.13).
_NO_NETWORK = re.compile(
    r"error sending request|network was disabled|dns error|tcp connect|timed out|failed to fetch", re.I
)
# Ends the list of releases when an index never says "no more".
_MOST_RELEASES = 500


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that holds ``package`` at ``version``, and what the harness needs. made: it is new."""

    package: str
    version: str
    folder: Path
    made: bool

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def find_uv() -> str:
    """Return the path of uv: what the variable UV says, the one that is installed as a package, the one on PATH.

    Raises UsageError when there is none. uv itself sets UV for what it runs.
    """
    if given := os.environ.get("UV"):
        return given
    try:
        found: str = importlib.import_module("uv").find_uv_bin()
    except (ModuleNotFoundError, FileNotFoundError):
        found = shutil.which("uv") or ""
    if not found:
        raise UsageError("uv is needed to make environments and was not found: pip install uv")
    return found


def default_cache() -> Path:
    """Return where environments are kept unless the user says otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harness"


class Environments:
    """Makes environments in a folder, and finds those that are there.

    invariant: a folder under its final name is complete; one that is being made has a name that begins with
    a dot, and is removed when making it fails or is interrupted.
    """

    def __init__(self, cache: Path, package: str, *, extra: Iterable[str] = ()) -> None:
        """package: the distribution under test. extra: requirements of the scenario, such as ``aiosqlite``."""
        self._root = cache / "environments"
        self._package = canonicalize_name(package)
        self._requirements = sorted({*own_requirements(), *(_checked(text) for text in extra)})
        self._uv = find_uv()

    def releases(self, low: str = "", high: str = "") -> list[str]:
        """Return the releases that uv finds for this Python between ``low`` and ``high``, oldest first.

        Pre-releases are left out, as pip does. Raises UsageError when there is none.
        """
        below = f"<={_version(high)}" if high else ""
        above = f",>={_version(low)}" if low else ""
        found: list[str] = []
        while len(found) < _MOST_RELEASES:
            text = f"{self._package} {below}{above}" if below else f"{self._package} {above[1:]}"
            command = ["pip", "compile", "--no-deps", "--no-header", "--no-annotate", "--python", sys.executable, "-"]
            done = self._run(command, given=text)
            match = re.search(r"==\s*(\S+)", done.stdout)
            if done.returncode or match is None:
                if found and not _NO_NETWORK.search(done.stderr):
                    break
                asked = f" between {low or 'the first'} and {high or 'the last'}" if low or high else ""
                raise UsageError(self._why(f"no releases of {self._package}{asked}", done.stderr))
            found.append(match.group(1))
            below = f"<{found[-1]}"
        return found[::-1]

    def latest(self, specifier: str) -> str:
        """Return the last release in a range, such as ``>=1.2,<1.24``; raises UsageError when there is none."""
        text = f"{self._package}{specifier}"
        command = ["pip", "compile", "--no-deps", "--no-header", "--no-annotate", "--python", sys.executable, "-"]
        done = self._run(command, given=text)
        match = re.search(r"==\s*(\S+)", done.stdout)
        if done.returncode or match is None:
            raise UsageError(self._why(f"no release of {text}", done.stderr))
        return match.group(1)

    def get(self, version: str, *, tell: Callable[[str], None] = lambda _: None) -> Environment:
        """Return the environment of ``version``, made now if there is none.

        tell: called with a line before something slow begins. Raises UsageError when it cannot be made.
        """
        wanted = str(_version(version))
        folder = self._root / self._name(wanted)
        kept = Environment(self._package, wanted, folder, made=False)
        if kept.python.exists():
            return kept
        shutil.rmtree(folder, ignore_errors=True)  # the interpreter that it was made with is gone
        tell(f"making an environment with {self._package} {wanted}")
        with self._half_made() as making:
            what = f"{self._package}=={wanted}"
            self._must(["venv", "--python", sys.executable, "--no-project", str(making)], what=what)
            python = Environment(self._package, wanted, making, made=True).python
            command = ["pip", "install", "--python", str(python), what, *self._requirements]
            self._must(command, what=what)
            try:
                making.rename(folder)  # an interpreter finds its environment by its own place, so it may move
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
        return Environment(self._package, wanted, folder, made=True)

    def _name(self, version: str) -> str:
        key = hashlib.sha256("\n".join(self._requirements).encode()).hexdigest()[:8]
        return f"{self._package}-{version}-{platform.python_implementation().lower()}{platform.python_version()}-{key}"

    @contextmanager
    def _half_made(self) -> Iterator[Path]:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            making = Path(tempfile.mkdtemp(prefix=".making-", dir=self._root))
        except OSError as error:
            raise UsageError(f"cannot keep environments in {self._root}: {error.strerror or error}") from error
        try:
            yield making
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def _run(self, arguments: list[str], *, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [self._uv, "--no-progress", "--color", "never", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    def _must(self, arguments: list[str], *, what: str) -> None:
        done = self._run(arguments)
        if done.returncode:
            raise UsageError(self._why(f"cannot install {what}", done.stderr))

    def _why(self, what: str, errors: str) -> str:
        if _NO_NETWORK.search(errors):
            return f"{what}: the package index was not reached (no network?)"
        if re.search(r"no version of|only .* available|not found in the package registry", errors):
            return f"{what}: there is no such release"
        lines = [line.strip() for line in errors.splitlines() if line.strip() and not line.startswith("Using Python")]
        return f"{what}: {' '.join(lines)[:300] or 'uv failed without a word'}"


def own_requirements() -> list[str]:
    """Return what the harness itself needs to run, without its extras; raises UsageError when nobody knows."""
    try:
        declared = requires("harness") or []
    except PackageNotFoundError as error:
        raise UsageError("harness is not installed, so what it needs is not known: pip install -e .") from error
    plain = [text for text in declared if "extra ==" not in text]
    return [str(Requirement(text)) for text in plain]


def _checked(text: str) -> str:
    try:
        return str(Requirement(text))
    except InvalidRequirement as error:
        raise UsageError(f"no requirement: {text!r}") from error


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise UsageError(f"no version: {text!r}") from error
