"""The failure store: small files, safe against other processes and against damage."""

import asyncio
import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.choice import Decision
from harness.model.rung import Rung
from harness.model.schedule import Schedule
from harness.runtime.points import point
from harness.search.portfolio import search
from harness.search.store import Entry, Store, Stored, key_of
from harness.search.sweep import Sweep
from harness.search.target import Target


def entry_of(index=0, *, storage="memory", facts="00000000", text="hold a"):
    """Return an entry whose schedule has one decision."""
    schedule = Schedule(
        decisions=(Decision(index, 1, "hold", "hold a", "a: hold"),),
        setup={"scenario": "shop", "storage": storage},
        facts=facts,
    )
    return Entry("shop.py::shop", schedule.token(), text, "assertion", "it broke")


@pytest.fixture
def store(tmp_path):
    """Return a store whose warnings are an attribute of the test's folder."""
    warnings = []
    made = Store(tmp_path / "kept", warn=warnings.append)
    made.warnings = warnings
    return made


def test_an_entry_is_read_as_it_was_written(store):
    """One small file, of JSON."""
    kept = store.keep(entry_of())
    assert store.entries() == [kept]
    assert kept.file.stat().st_size < 1000
    assert json.loads(kept.file.read_text())["format"] == 1
    assert not list(store.folder.glob(".*"))


def test_entries_belong_to_what_they_were_set_up_with(store):
    """A storage is part of it; who ran a scenario is not."""
    store.keep(entry_of())
    other = store.keep(entry_of(storage="sqlite"))
    assert store.entries(key_of({"scenario": "shop", "storage": "sqlite"})) == [other]
    assert store.entries(key_of({"scenario": "shop", "storage": "sqlite", "test": "shop.py::shop[sqlite]"})) == [other]
    assert key_of({"test": "a"}) != key_of({"test": "b"})


def test_the_same_schedule_is_one_file_whoever_found_it(store):
    """The digests of a trace depend on the Python."""
    first, second = store.keep(entry_of()), store.keep(entry_of(facts="11111111"))
    assert first.file == second.file
    assert store.entries() == [second]
    store.keep(entry_of(1))
    assert len(store.entries()) == 2


def test_what_cannot_be_read_is_one_warning_and_stays(store):
    """Damage, other formats, damaged tokens."""
    store.keep(entry_of())
    good = store.entries()[0]
    bad = {
        "half.json": good.file.read_text()[:40],
        "later.json": '{"format": 2}',
        "list.json": "[1]",
        "bytes.json": "\x00",
        "token.json": good.file.read_text().replace("h1.", "h1.x"),
    }
    for name, text in bad.items():
        (store.folder / name).write_text(text)
    (store.folder / "folder.json").mkdir()
    assert store.entries() == [good]
    assert len(store.warnings) == 6
    assert all("cannot be read and is left alone" in line and "\n" not in line for line in store.warnings)
    assert {name: (store.folder / name).read_text() for name in bad} == bad


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    """The search goes on."""
    (tmp_path / "file").write_text("")
    warnings = []
    Store(tmp_path / "file" / "kept", warn=warnings.append).keep(entry_of())
    assert len(warnings) == 1
    assert "was not kept" in warnings[0]


def test_dropping_twice_is_fine(store):
    """Another process may have been faster."""
    kept = store.keep(entry_of())
    store.drop(kept)
    store.drop(kept)
    assert (store.entries(), store.warnings) == ([], [])


def _write(folder):
    store = Store(Path(folder), warn=lambda line: (_ for _ in ()).throw(AssertionError(line)))
    for round_number in range(30):
        for index in range(4):
            kept = store.keep(entry_of(index, text=f"round {round_number}"))
            store.entries()
        store.drop(kept)


@pytest.mark.slow
def test_processes_write_at_the_same_time(store):
    """Nobody reads half a file, and nothing is left behind."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(str(store.folder),)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(store.entries()) == 3
    assert not list(store.folder.glob(".*"))


# -- as a phase ----------------------------------------------------------------------------------------


def target_of(*names, broken=True, before=()):
    """Return a target that breaks when its second point arrives first."""

    async def program():
        done = []

        async def step(name):
            await point(name)
            done.append(name)

        await asyncio.gather(*(asyncio.sleep(delay) for delay in before), *(step(name) for name in names))
        assert done[0] == names[0] or not broken, "the second came first"

    return Target(name="program", program=program, setup={"test": "program"})


def look(target, store, *, budget=40):
    """Search with the store; return the result and the phase."""
    stored = Stored(store, target, where="program")
    result = search(target, phases=[stored, Sweep(rung=target.rung)], budget=budget)
    stored.close(result)
    return result, stored


@pytest.mark.slow
def test_what_failed_runs_first_until_it_is_fixed(store):
    """Found by the sweep, then by the store, then FIXED and gone."""
    first, _ = look(target_of("a", "b"), store)
    assert first.counterexample.found_by == "sweep"
    again, stored = look(target_of("a", "b"), store)
    assert (again.counterexample.found_by, again.counterexample.found_after) == ("store", 1)
    assert again.counterexample.text == first.counterexample.text
    assert stored.lines() == []
    assert len(store.entries()) == 1
    fixed, stored = look(target_of("a", "b", broken=False), store)
    assert fixed.verdict == "none-found"
    assert stored.lines() == ["FIXED: program (hold step/a): assertion holds now"]
    assert store.entries() == []


@pytest.mark.slow
def test_what_diverged_is_followed_in_words(store):
    """Another op before it moves the choice; the words still name it, and what they find takes its place."""
    look(target_of("a", "b"), store)
    before = store.entries()
    result, stored = look(target_of("a", "b", before=[1.0]), store)
    assert (result.counterexample.found_by, stored.lines()) == ("store", [])
    after = store.entries()
    assert [entry.text for entry in after] == ["hold step/a"]
    assert after[0].file != before[0].file
    _, stored = look(target_of("a", "b", before=[1.0, 2.0], broken=False), store)
    assert stored.lines() == ["FIXED: program (hold step/a): assertion holds now"]


def test_what_diverges_says_where_and_stays(store):
    """No op has the name any more."""
    look(target_of("a", "b"), store)
    kept = store.entries()
    _, stored = look(target_of("c", "d", broken=False), store)
    assert stored.lines() == [
        f"DIVERGED: program (hold step/a): at choice 1 recorded: hold step/a: hold, now: hold step/c [{kept[0].file}]"
    ]
    assert store.entries() == kept


def test_an_interrupt_keeps_what_had_failed(store):
    """Not shrunk yet; the next search begins with it and shrinks it."""
    target = target_of("a", "b")
    stored = Stored(store, target, where="program")

    def after_two(number, _phase):
        if number == 2:
            raise KeyboardInterrupt

    result = search(target, phases=[stored, Sweep(rung=target.rung)], budget=40, progress=after_two)
    assert result.interrupted
    assert result.failing is not None
    stored.close(result)
    assert [entry.shrunk for entry in store.entries()] == [False]
    result, _ = look(target, store)
    assert result.counterexample.found_by == "store"
    assert [entry.shrunk for entry in store.entries()] == [True]


def test_what_needs_more_than_may_be_assumed_waits(store):
    """Two sleeps against their deadlines, in a search that takes sleeps as exact."""

    async def program():
        done = []

        async def step(delay):
            await asyncio.sleep(delay)
            done.append(delay)

        await asyncio.gather(step(1.0), step(2.0))
        assert done == [1.0, 2.0]

    target = Target(name="program", program=program, setup={"test": "program"})
    result, _ = look(target, store)
    assert result.counterexample.rung is Rung.LATENCY
    kept = store.entries()
    result, stored = look(replace(target, rung=Rung.EXACT), store)
    assert (result.verdict, stored.lines(), store.entries()) == ("none-found", [], kept)


def test_a_finding_that_does_not_replay_is_not_kept(store):
    """There is nothing to run first."""
    flips = iter(range(1000))

    async def program():
        await point("a")
        assert next(flips) % 2, "sometimes"

    target = Target(name="program", program=program, setup={"test": "program"}, judges=())
    result, _ = look(target, store)
    assert result.verdict == "nondeterministic"
    assert store.entries() == []


def test_an_entry_names_what_fails():
    """The scenario with its storage and the words."""
    assert entry_of().title == "shop on memory (hold a)"
