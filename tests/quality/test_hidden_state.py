"""No certificate where two orders differ only in a hidden place, with no help from the check of pruned prefixes.

Each program writes two names to such a place, in the order of two arrivals, lets two ops arrive that have nothing to do
with it, and then fails unless the second name was written last. A search that takes the two states for one proves it.
"""

import array
import asyncio
import collections
import contextvars
import ctypes
import enum
import functools
import hashlib
import io
import itertools
import operator
import os
import random
import re
import tempfile
import threading
import types
import weakref
from pathlib import Path

import pytest

import harness
from harness.search import prove as proofs
from harness.search.prove import prove
from harness.search.target import Target
from tests.quality import hidden_module

PLACES = {}
VARIABLE = contextvars.ContextVar("hidden")
LOCAL = threading.local()


def place(make):
    """Register what returns how to write to a place and how to read from it."""
    PLACES[make.__name__] = make
    return make


def attribute_of(thing, name="value"):
    """Return the writer and the reader of an attribute."""
    return lambda text: setattr(thing, name, text), lambda: getattr(thing, name)


def items_of(container, key="value"):
    """Return the writer and the reader of an item."""
    return functools.partial(operator.setitem, container, key), lambda: container[key]


def steps_of(iterator):
    """Return a writer that leaves ``iterator`` at its third item when "two" came last, else at its second.

    "one" before "two" moves it by one and by one; the other order by one, by one and back by none.
    """
    moved = iter(iterator)
    first = []

    def write(name):
        if not first:
            first.append(next(moved))
            if name == "one":
                next(moved)
        first[:] = ["seen"]

    return write, lambda: "two" if next(moved) == "c" else "one"


@place
def closure():
    value = None

    def write(name):
        nonlocal value
        value = name

    return write, lambda: value


@place
def generator():
    def remember():
        value = None
        while True:
            value = (yield value) or value

    running = remember()
    next(running)
    return running.send, lambda: running.send(None)


@place
def context():
    own = contextvars.copy_context()
    return lambda name: own.run(VARIABLE.set, name), lambda: own[VARIABLE]


@place
def file_by_name():
    path = Path(tempfile.gettempdir(), f"harness-hidden-{os.getpid()}")
    return path.write_text, lambda: (path.read_text(), path.unlink())[0]


@place
def bytes_io():
    buffer = io.BytesIO(b"---")
    return lambda name: buffer.getbuffer().__setitem__(slice(None), name.encode()), lambda: buffer.getvalue().decode()


@place
def memory_view():
    view = memoryview(bytearray(3))
    return lambda name: view.__setitem__(slice(None), name.encode()), lambda: bytes(view).decode()


@place
def numbers():
    values = array.array("i", [0])
    return lambda name: values.__setitem__(0, name == "two"), lambda: "two" if values[0] else "one"


@place
def c_integer():
    value = ctypes.c_int()
    return lambda name: setattr(value, "value", name == "two"), lambda: "two" if value.value else "one"


@place
def digest():
    state = hashlib.sha256()
    right = hashlib.sha256(b"onetwo").digest()
    return lambda name: state.update(name.encode()), lambda: "two" if state.digest() == right else "one"


@place
def random_module():
    right = random.Random("two").random()
    return random.seed, lambda: "two" if random.random() == right else "one"


@place
def random_source():
    source, right = random.Random(), random.Random("two").random()
    return source.seed, lambda: "two" if source.random() == right else "one"


@place
def virtual_time():
    written = {}
    loop = asyncio.get_running_loop()
    return (
        lambda name: written.__setitem__(name, loop.time()),
        lambda: "two" if written["two"] > written["one"] else "one",
    )


@place
def environment():
    return items_of(os.environ, "HARNESS_HIDDEN")


@place
def thread_local():
    return attribute_of(LOCAL)


@place
def event_of_threads():
    event = threading.Event()
    return lambda name: event.set() if name == "two" else event.clear(), lambda: "two" if event.is_set() else "one"


@place
def lock_of_threads():
    lock = threading.Lock()

    def write(name):
        if lock.locked():
            lock.release()
        if name == "two":
            lock.acquire()

    return write, lambda: "two" if lock.locked() else "one"


@place
def cache():
    now = {}

    @functools.lru_cache
    def cached():
        return now["value"]

    def write(name):
        cached.cache_clear()
        now["value"] = name
        cached()
        now.clear()

    return write, cached


@place
def count():
    return steps_of(map("abcd".__getitem__, itertools.count()))


@place
def iterator_over_dict():
    return steps_of(dict.fromkeys("abcd"))


@place
def iterator_over_deque():
    return steps_of(collections.deque("abcd"))


@place
def scanner():
    return steps_of(map(operator.itemgetter(0), re.finditer(".", "abcd")))


@place
def length_of_a_deque():
    kept = {}
    return (
        lambda name: kept.__setitem__("value", collections.deque(maxlen=len(name) + (name == "two"))),
        lambda: "two" if kept["value"].maxlen == 4 else "one",
    )


class Slotted:
    """Keeps its value in a slot."""

    __slots__ = ("value",)


@place
def slot():
    return attribute_of(Slotted())


class Text(str):
    """Text that is no plain one."""


@place
def text_of_a_subclass():
    kept = {}
    return lambda name: kept.__setitem__("value", Text(name)), lambda: str(kept["value"])


@place
def descriptor():
    class Descriptor:
        def __set__(self, _, value):
            self.kept = value

        def __get__(self, *_):
            return self.kept

    class Owner:
        value = Descriptor()

    return attribute_of(Owner())


def owner_of_box():
    """Return an object whose methods and property share what no attribute shows."""
    box = [None]

    class Owner:
        @property
        def value(self):
            return box[0]

        @value.setter
        def value(self, name):
            box[0] = name

        def write(self, name, *, history=[]):  # noqa: B006  # the default is the place
            history[:] = [name]

        def read(self):
            return self.write.__kwdefaults__["history"][0]

    return Owner()


@place
def closure_of_a_property():
    return attribute_of(owner_of_box())


@place
def default_of_a_method():
    owner = owner_of_box()
    return owner.write, owner.read


@place
def method_of_a_class():
    class Owner:
        pass

    owner = Owner()
    return lambda name: setattr(Owner, "read", lambda self: name), lambda: owner.read()


@place
def class_of_an_object():
    one, two = (type("Owner", (), {"read": (lambda self, name=name: name)}) for name in ("one", "two"))
    owner = one()
    return lambda name: setattr(owner, "__class__", two if name == "two" else one), lambda: owner.read()


@place
def attribute_of_a_class():
    class Owner:
        value = None

    return attribute_of(Owner)


class Colour(enum.Enum):
    """Something to write on."""

    RED = 1


@place
def attribute_of_a_member():
    return attribute_of(Colour.RED)


@place
def attribute_of_an_exception():
    return attribute_of(OSError(2, "gone"), "filename")


@place
def global_of_another_module():
    def write(name):
        hidden_module.VALUE = name

    return write, lambda: hidden_module.VALUE


@place
def functions_of_another_module():
    return hidden_module.write, hidden_module.read


@place
def module_that_is_made():
    return attribute_of(types.ModuleType("made"))


@place
def attribute_of_the_loop():
    return attribute_of(asyncio.get_running_loop())


@place
def weak_dictionary():
    key = Slotted.__new__(type("Key", (), {}))
    kept = weakref.WeakKeyDictionary({key: None})
    return lambda name: kept.__setitem__(key, name), lambda: kept[key]


@place
def finalizer():
    key, said = type("Key", (), {})(), []
    kept = {}

    def write(name):
        if kept:
            kept["value"].detach()
        kept["value"] = weakref.finalize(key, said.append, name)

    return write, lambda: (kept["value"](), said[-1])[1]


@place
def code_on_one_line():
    kept = {}

    def write(name):
        kept["value"] = (lambda: "one") if name == "one" else (lambda: "two")

    return write, lambda: kept["value"]()


def target_of(make):
    """Return the program that keeps what came last in one place."""

    async def program():
        write, read = make()

        async def tell(name):
            await harness.point(name)
            write(name)

        await asyncio.gather(tell("one"), tell("two"))
        await asyncio.gather(harness.point("x"), harness.point("y"))
        assert read() == "two"

    return Target(make.__name__, program)


@pytest.mark.parametrize("name", PLACES)
def test_no_place_is_hidden_from_a_proof(name, monkeypatch):
    """Refuted, or at the least not certified."""
    monkeypatch.setattr(proofs, "MAX_SAMPLE", 0)
    monkeypatch.setenv("HARNESS_HIDDEN", "")
    proof = prove(target_of(PLACES[name]), budget=400)
    assert proof.verdict == "violation", (proof.verdict, proof.unseen, proof.reasons)


@pytest.mark.parametrize(("mode", "declares"), [("fingerprint", False), ("certain", False), ("certain", True)])
def test_what_outlives_an_execution_is_found_out(mode, declares):
    """Only the first execution of all finds the cache empty, and that one passes."""
    cached = {}

    async def program():
        if declares:
            harness.declared()

        async def tell(name):
            await harness.point(name)
            return cached.setdefault("first", name)

        assert (await asyncio.gather(tell("one"), tell("two")))[0] == "one"

    proof = prove(Target("cached", program, rung=harness.Rung.RELAXED if declares else harness.Rung.EXACT), mode=mode)
    assert proof.verdict == "unfinished"
    assert any("left something behind" in reason for reason in proof.reasons)


@pytest.mark.parametrize("sample", [0, proofs.MAX_SAMPLE])
def test_a_program_that_only_goes_round_is_refuted(sample, monkeypatch):
    """Its states repeat, so that no execution of the search comes to the turn limit."""
    monkeypatch.setattr(proofs, "MAX_SAMPLE", sample)

    async def program():
        async def spin():
            while True:
                await asyncio.sleep(0)

        await asyncio.gather(spin(), spin())

    proof = prove(Target("spin", program, rung=harness.Rung.RELAXED, turn_limit=500))
    assert (proof.verdict, proof.outcomes[0].violation.oracle) == ("violation", "progress")
