"""``harness.check_storage`` on good storages and on bad ones."""

import asyncio
import copy

import pytest
from agent_framework import InMemoryCheckpointStorage

import harness
from harness.adapters.agent_framework import PLUGIN
from harness.adapters.agent_framework.check import StorageContractError
from harness.model.errors import UsageError


@pytest.mark.slow
@pytest.mark.parametrize("name", ["memory", "remote", "sqlite", "cosmos"])
def test_the_registered_storages_pass(name, tmp_path):
    """Five promises each."""
    if name == "cosmos":
        pytest.importorskip("agent_framework_azure_cosmos")
    report = harness.check_storage(lambda: PLUGIN.make_storage(name, tmp_path))
    assert len(report.checks) == 5
    assert report.executions > 20


@pytest.mark.slow
def test_the_file_storage_passes(tmp_path):
    """In a folder of its own each time."""
    numbers = iter(range(100_000))
    harness.check_storage(lambda: PLUGIN.make_storage("file", tmp_path / str(next(numbers))), budget=30)


class Aliasing(InMemoryCheckpointStorage):
    """Keeps what it is given instead of a copy."""

    async def save(self, checkpoint):
        self._checkpoints[checkpoint.checkpoint_id] = checkpoint
        return checkpoint.checkpoint_id


class Losing(InMemoryCheckpointStorage):
    """Reads, waits, and writes back: of two saves at once one is lost."""

    async def save(self, checkpoint):
        before, copied = dict(self._checkpoints), copy.deepcopy(checkpoint)
        await asyncio.sleep(0.01)
        self._checkpoints = {**before, checkpoint.checkpoint_id: copied}
        return checkpoint.checkpoint_id


class Torn(InMemoryCheckpointStorage):
    """Writes in two parts with a wait between them."""

    async def save(self, checkpoint):
        identity = await super().save(checkpoint)
        stored = self._checkpoints[identity]
        state, stored.state = stored.state, {}
        await asyncio.sleep(0.01)
        stored.state = state
        return identity


@pytest.mark.slow
@pytest.mark.parametrize(
    ("storage", "promise", "message"),
    [
        (Aliasing, "what was saved is loaded", "the stored checkpoint changed or differs"),
        (Losing, "saves made at once are all kept", "were kept"),
        (Torn, "a cancelled save is there as a whole", "left a checkpoint in parts"),
    ],
)
def test_a_broken_storage_is_reported_with_its_schedule(storage, promise, message):
    """The promise, what happened, and the rung."""
    with pytest.raises(StorageContractError) as caught:
        harness.check_storage(storage)
    text = str(caught.value)
    assert text.startswith(f"{storage.__name__}: {promise}")
    assert message in " ".join(text.split())
    assert "(rung exact)" in text


def test_what_is_no_storage_is_one_line():
    """With the methods that it misses."""

    class Half:
        async def save(self, checkpoint): ...

    with pytest.raises(UsageError, match=r"^Half is no checkpoint storage: it has no load, .*\(\)$"):
        harness.check_storage(Half)
    with pytest.raises(UsageError, match="check_storage takes a function"):
        harness.check_storage(42)


@pytest.mark.parametrize("name", ["save", "load", "get_latest", "list_checkpoints", "list_checkpoint_ids", "delete"])
def test_a_method_that_is_not_async_is_one_line(name):
    """With its name and what it returned."""
    storage = type("Plain", (InMemoryCheckpointStorage,), {name: lambda self, *args, **kwargs: []})
    with pytest.raises(UsageError, match=rf"^Plain\.{name}\(\) is not async: it returned list, and nothing to await$"):
        harness.check_storage(storage)
