"""What every registered storage keeps to, on the controlled loop and on the stock one."""

import asyncio
import inspect

import pytest
from agent_framework import WorkflowCheckpoint
from agent_framework.exceptions import WorkflowCheckpointException

from harness import execute
from harness.adapters.agent_framework import PLUGIN
from harness.adapters.agent_framework.storage import ControlledStorage
from harness.model.errors import MissingPackageError, UsageError
from harness.runtime.shapes import SHAPES


def checkpoint(number, *, workflow="flow"):
    """Return a checkpoint with a timestamp that grows with its number."""
    return WorkflowCheckpoint(
        workflow_name=workflow,
        graph_signature_hash="hash",
        checkpoint_id=f"c{number}",
        timestamp=f"2024-01-01T00:00:{number:02d}+00:00",
        state={"_step_cache": {"key": {"nested": [1, (2, 3)]}}},
    )


# By timestamp, unless a storage orders by write sequence: c2 is written last.
LATEST = {"write-order": "c2"}


async def contract(storage, *, latest="c3"):
    """Exercise all six methods."""
    assert await storage.get_latest(workflow_name="flow") is None
    assert [await storage.save(checkpoint(number)) for number in (1, 3, 2)] == ["c1", "c3", "c2"]
    await storage.save(checkpoint(9, workflow="other"))
    loaded = await storage.load("c1")
    assert loaded.state == checkpoint(1).state
    loaded.state["_step_cache"]["key"]["nested"].append("changed")
    assert (await storage.load("c1")).state == checkpoint(1).state
    assert (await storage.get_latest(workflow_name="flow")).checkpoint_id == latest
    assert sorted(await storage.list_checkpoint_ids(workflow_name="flow")) == ["c1", "c2", "c3"]
    listed = await storage.list_checkpoints(workflow_name="flow")
    assert sorted(item.checkpoint_id for item in listed) == ["c1", "c2", "c3"]
    assert await storage.delete("c3") is True
    assert await storage.delete("c3") is False
    with pytest.raises(WorkflowCheckpointException):
        await storage.load("c3")
    close = getattr(storage, "close", None)
    if close is not None:
        closing = close()
        if inspect.isawaitable(closing):
            await closing
    return "kept"


def make(name, directory):
    """Return a storage, or skip the test when it belongs to a package that is not installed."""
    try:
        return PLUGIN.make_storage(name, directory)
    except MissingPackageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PLUGIN.storages())
def test_a_storage_keeps_the_contract_in_every_await_shape(name, shape, tmp_path):
    """The proxy changes when a save happens, never what it does."""
    storage = make(name, tmp_path)
    ending = execute(lambda: contract(ControlledStorage(storage, shape=shape), latest=LATEST.get(name, "c3"))).ending
    assert (ending.kind, ending.value) == ("returned", "kept"), ending


@pytest.mark.parametrize("name", PLUGIN.storages())
def test_a_storage_keeps_the_contract_on_the_stock_loop(name, tmp_path):
    """It knows nothing of the harness."""
    assert asyncio.run(contract(make(name, tmp_path), latest=LATEST.get(name, "c3"))) == "kept"


def test_what_is_no_storage_is_refused_in_one_line():
    """The message names the methods that are missing."""

    class Half:
        async def save(self, checkpoint): ...

    with pytest.raises(UsageError, match=r"^Half is no checkpoint storage: it has no load, list_checkpoints, .*\(\)$"):
        ControlledStorage(Half())
