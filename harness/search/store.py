"""The failure store: failing schedules as small files, one each, that run first next time.

Owns the format of a file and what is safe when several processes write; must not know who fails.

A file is written under a name of its own and then renamed, so that nobody reads half of one. Its name depends on what
fails and in which order, so that two processes that find the same write the same file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.model.errors import DivergenceError, TokenError, UsageError
from harness.model.files import write_whole
from harness.model.outcome import Execution
from harness.model.schedule import Schedule, parse_token
from harness.search.portfolio import Failure, Trial
from harness.search.readable import Readable, parse_readable
from harness.search.recording import Recorded, Replay
from harness.search.result import SearchResult
from harness.search.target import Target

FOLDER = Path(".harness")
_FORMAT = 1
_FIELDS = ("where", "token", "text", "oracle", "message")

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One failing schedule.

    where: the test's id, or the scenario's file and name. text: the schedule in words; "" when it cannot be executed
    in words. oracle, message: what was violated, in one line. shrunk: whether it is the smallest. file: where it is.
    """

    where: str
    token: str
    text: str
    oracle: str
    message: str
    shrunk: bool = True
    file: Path | None = None

    @property
    def schedule(self) -> Schedule:
        """The schedule of the token."""
        return parse_token(self.token)

    @property
    def title(self) -> str:
        """What fails, and in which order."""
        setup = self.schedule.setup
        name = setup.get("scenario") or self.where
        storage = f" on {setup['storage']}" if "scenario" in setup else ""
        return f"{name}{storage} ({self.text or 'schedule in ' + str(self.file)})"


def key_of(setup: Mapping[str, str]) -> str:
    """Return what entries belong together: a test, or a scenario whoever runs it, with all that it was set up with."""
    left_out = "test" if "scenario" in setup else ""
    return json.dumps({name: value for name, value in sorted(setup.items()) if name != left_out})


class Store:
    """A folder of failing schedules, or to be read only, one file of such a folder."""

    def __init__(self, folder: Path, *, warn: Warn) -> None:
        """warn: called with one line for a file that cannot be read or written; the file is left as it is."""
        self.folder = folder
        self._warn = warn

    def entries(self, key: str | None = None) -> list[Entry]:
        """Return what can be read, by file name; with ``key`` only what belongs to it."""
        try:
            # one file of a store is a store that holds nothing else
            files = [self.folder] if self.folder.is_file() else sorted(self.folder.glob("*.json"))
        except OSError:
            files = []
        found = []
        for file in files:
            entry = self._read(file)
            if entry is not None and (key is None or key_of(entry.schedule.setup) == key):
                found.append(entry)
        return found

    def keep(self, entry: Entry) -> Entry:
        """Write ``entry`` and return it with its file; a folder that cannot be written is one warning."""
        file = self.folder / _file_name(entry)
        payload = {"format": _FORMAT, **{name: getattr(entry, name) for name in _FIELDS}, "shrunk": entry.shrunk}
        try:
            write_whole(file, json.dumps(payload, indent=1, ensure_ascii=False) + "\n")
        except OSError as error:
            self._warn(f"a failing schedule was not kept in {self.folder}: {error.strerror}")
        return replace(entry, file=file)

    def drop(self, entry: Entry) -> None:
        """Remove ``entry``; that another process was faster is fine."""
        if entry.file is None:
            return
        try:
            entry.file.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"{entry.file} was not removed: {error.strerror}")

    def _read(self, file: Path) -> Entry | None:
        try:
            payload = json.loads(file.read_text(encoding="utf-8"))
            if payload["format"] != _FORMAT:
                raise ValueError(f"format {payload['format']!r}")
            entry = Entry(**{name: str(payload[name]) for name in _FIELDS}, shrunk=bool(payload["shrunk"]), file=file)
            parse_token(entry.token)
        except FileNotFoundError:
            return None  # another process has just seen it fixed
        except (OSError, ValueError, KeyError, TypeError, TokenError) as error:
            reason = str(error).splitlines()[0] if str(error) else ""
            self._warn(f"{file} cannot be read and is left alone ({type(error).__name__}: {reason})")
            return None
        return entry


def _file_name(entry: Entry) -> str:
    """Return a name that depends on what fails in which order, and not on who found it on which Python."""
    schedule = entry.schedule
    setup = schedule.setup
    name = setup.get("scenario") or setup.get("test", "").rpartition("::")[2] or "program"
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60]
    decisions = [(item.index, item.value, item.kind) for item in schedule.decisions]
    identity = repr((key_of(setup), schedule.discipline, schedule.rung.label, decisions))
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.json"


@dataclass(slots=True)
class Stored:
    """The first phase of a search: what failed before.

    fixed: what passes now. diverged: what cannot be followed any more, with the place where it ended. again: what
    still fails and is reported.
    """

    store: Store
    target: Target
    where: str
    name: str = "store"
    fixed: list[Entry] = field(default_factory=list)
    diverged: list[tuple[Entry, str]] = field(default_factory=list)
    again: Entry | None = None

    def look(self, trial: Trial) -> Failure | None:
        """Execute each stored schedule, and return the first that fails."""
        failure: Failure | None = None
        for entry in self.store.entries(key_of(self.target.setup)):
            before = trial.found_after, trial.first_failing
            found, execution, lost = _follow(trial, entry)
            if lost:
                self.diverged.append((entry, lost))
            elif found is None:
                self.fixed.append(entry)
            elif execution.rung > self.target.rung:
                # it still fails, and needs more than may be assumed here
                trial.found_after, trial.first_failing = before
            elif failure is None:
                failure, self.again = found, entry
        return failure

    def close(self, result: SearchResult) -> None:
        """Keep what ``result`` found, and let what is fixed leave; to be called however the search ended."""
        found = result.counterexample
        execution = result.failing if found is None else found.execution
        if execution is not None and (found is None or found.replays) and execution.violations:
            entry = Entry(
                where=self.where,
                token=execution.schedule.token(),
                text="" if found is None else found.text,
                oracle=execution.violations[0].oracle,
                message=execution.violations[0].message.partition("\n")[0],
                shrunk=found is not None,
            )
            # what is stored already is no news when the search was interrupted while it looked closer
            if found is not None or self.again is None:
                kept = self.store.keep(entry)
                if found is not None and self.again is not None and kept.file != self.again.file:
                    self.store.drop(self.again)  # the same failure, smaller, or in today's program
        for entry in self.fixed:
            self.store.drop(entry)

    def lines(self) -> list[str]:
        """Return what a user should know, one line each."""
        said = [f"FIXED: {entry.title}: {entry.oracle} holds now" for entry in self.fixed]
        return said + [f"DIVERGED: {entry.title}: {where} [{entry.file}]" for entry, where in self.diverged]


def _follow(trial: Trial, entry: Entry) -> tuple[Failure | None, Execution, str]:
    """Execute ``entry``, as recorded and else in words; return how it fails, the execution, and where it diverged."""
    schedule = entry.schedule
    replay = Replay(schedule)
    execution = trial.run(replay, discipline=schedule.discipline, rung=schedule.rung, beyond=True)
    lost = _lost(replay, execution)
    if not lost:
        plan = schedule.plan()
        failure = Failure(plan, schedule.discipline, schedule.rung, minimal=entry.shrunk)
        return (failure if execution.violations else None), execution, ""
    if not entry.text:
        return None, execution, lost
    try:
        words: Readable = parse_readable(entry.text)
        recorded = Recorded(words)
        execution = trial.run(recorded, rung=schedule.rung, beyond=True)
        words.check()
    except UsageError:
        return None, execution, lost  # the words name what the program has no longer
    return (Failure(recorded.plan, "ranks", schedule.rung) if execution.violations else None), execution, ""


def _lost(replay: Replay, execution: Execution) -> str:
    """Return in one line where a replay left its schedule, or ""."""
    error = replay.diverged
    if error is None:
        try:
            replay.check_ended(execution.choices, now_s=execution.now_s)
        except DivergenceError as ended:
            error = ended
    if error is None:
        return ""
    return f"at choice {error.choice} recorded: {error.recorded}, now: {error.met}"
