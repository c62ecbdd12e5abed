"""The local pool: every unit is done once, whoever dies; nothing of it is left."""

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest

from harness.model.errors import WorkerError
from harness.search.processes import Processes, may_fork
from tests.data.shared_units import Recipe, Square

CLEAN = Recipe("clean")


def run_all(pool, units, recipe=CLEAN):
    """Return what each unit came to, in the order of the units, and the processes that worked."""
    numbers = {pool.submit(recipe, unit): at for at, unit in enumerate(units)}
    found = dict(pool.next() for _ in units)
    assert sorted(found) == sorted(numbers)
    return [found[number][0] for number in numbers], {pid for _, pid in found.values()}


def alive(pid):
    """Return whether a process runs; one that ended and was not waited for counts, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children():
    """Return the processes that this one started."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.mark.slow
@pytest.mark.parametrize("forked", [True, False])
def test_units_are_done_once_and_by_others(forked):
    """Whether the workers are forked or new interpreters."""
    with Processes(2, forked=forked) as pool:
        squares, pids = run_all(pool, [Square(number) for number in range(20)])
    assert squares == [number**2 for number in range(20)]
    assert os.getpid() not in pids
    assert not any(map(alive, pids))


@pytest.mark.slow
def test_a_unit_whose_worker_died_is_run_again(tmp_path):
    """Once; the others that it had go to the other workers, and nothing is done twice."""
    with Processes(2) as pool:
        squares, _ = run_all(pool, [Square(3, deaths=1, marks=str(tmp_path)), *map(Square, range(10))])
    assert squares == [9, *(number**2 for number in range(10))]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_a_unit_that_kills_two_workers_is_an_error(tmp_path):
    """One that says how they died."""
    before = children()
    with Processes(2) as pool, pytest.raises(WorkerError, match=r"two worker processes died .* \(signal 9\)"):
        run_all(pool, [Square(3, deaths=9, marks=str(tmp_path))])
    assert len(list(tmp_path.iterdir())) == 2
    assert children() == before


@pytest.mark.slow
def test_a_unit_that_hangs_in_c_is_given_up():
    """After the limit, twice; the error quotes the line in which it hangs."""
    began = time.monotonic()
    with Processes(1, limit_s=0.5) as pool, pytest.raises(WorkerError, match=r"shared_units.py.*in run"):
        run_all(pool, [Square(1, hangs=True)])
    assert time.monotonic() - began < 10


def test_what_a_recipe_refuses_is_an_error():
    """In the words of the recipe."""
    with Processes(1) as pool, pytest.raises(WorkerError, match="no program 'claen'"):
        run_all(pool, [Square(1)], Recipe("claen"))


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path, monkeypatch):
    """Also when it is killed, in the middle of a unit; and they leave no folder behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            pool = Processes(2).__enter__()
            for _ in range(2):
                pool.submit(CLEAN, Square(1, slow=True))
            pool._selector.select(5)
            os.write(writer, " ".join(str(worker.pid) for worker in [*pool._workers, *pool._spares]).encode())
            signal.pause()
        finally:
            os._exit(0)
    pids = [int(number) for number in os.read(reader, 1000).split()]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    until = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < until:
        os.sched_yield()
    assert len(pids) == 5
    assert not any(map(alive, pids))
    assert list(tmp_path.iterdir()) == []


def test_a_process_with_threads_is_not_forked():
    """Locks of other threads would stay locked for ever in the child."""
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    try:
        assert not may_fork()
    finally:
        event.set()
        thread.join()
