"""The Cosmos storage on its stand-in: every request an op, and the orders that the service has."""

import asyncio
import inspect
from typing import get_overloads

import pytest
from agent_framework import WorkflowCheckpoint

from harness import execute, point
from harness.adapters.agent_framework import PLUGIN
from harness.runtime.loop import LoopSettings

pytest.importorskip("agent_framework_azure_cosmos")

from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from harness.adapters.agent_framework.storages._cosmos_container import (
    ContainerStandIn,
    CosmosClientStandIn,
    DatabaseStandIn,
)


def checkpoint(identity, timestamp="2024-01-01T00:00:00+00:00", *, workflow="flow"):
    """Return a checkpoint."""
    return WorkflowCheckpoint(
        workflow_name=workflow, graph_signature_hash="hash", checkpoint_id=identity, timestamp=timestamp
    )


def storage_of(directory):
    """Return an empty storage."""
    return PLUGIN.make_storage("cosmos", directory)


async def container():
    """Return an empty container."""
    database = await CosmosClientStandIn().create_database_if_not_exists(id="one")
    return await database.create_container_if_not_exists(id="two", partition_key=PartitionKey(path="/workflow_name"))


async def latest_of(storage, *timestamps):
    """Save one checkpoint for each timestamp and return the name of the latest."""
    for number, timestamp in enumerate(timestamps, 1):
        await storage.save(checkpoint(f"c{number}", timestamp))
    return (await storage.get_latest(workflow_name="flow")).checkpoint_id


def test_each_request_of_a_save_is_an_op(tmp_path):
    """The first save makes the container; the answer of a write is an op of its own, that of a read is not."""

    async def program():
        storage = storage_of(tmp_path)
        await storage.save(checkpoint("c1"))
        await storage.save(checkpoint("c2"))
        await storage.get_latest(workflow_name="flow")
        await storage.delete("c1")

    execution = execute(program, settings=LoopSettings(tracing=True))
    assert execution.ending.kind == "returned"
    delivered = [turn for turn in execution.trace if turn.what.startswith("deliver ")]
    assert [turn.what.rpartition("/")[2] for turn in delivered] == [
        "create_database_if_not_exists",
        "create_container_if_not_exists",
        "upsert_item",
        "upsert_item.answer",
        "upsert_item",
        "upsert_item.answer",
        "query_items",
        "query_items",
        "delete_item",
        "delete_item.answer",
    ]
    assert {turn.where.rpartition(":")[0].rpartition("/")[2] for turn in delivered if "answer" not in turn.what} == {
        "_checkpoint_storage.py"
    }


def test_every_request_belongs_to_a_storage_operation(tmp_path):
    """So the sweep tries it before others."""
    seen = {}

    class Watch:
        """Answers 0 and notes what was asked."""

        def choose(self, point):
            if point.kind == "hold":
                seen[str(point.subject).rpartition("/")[2]] = point.interesting
            return 0

    async def program():
        await storage_of(tmp_path).save(checkpoint("c1"))

    assert execute(program, Watch()).ending.kind == "returned"
    assert seen == {
        "create_database_if_not_exists": True,
        "create_container_if_not_exists": True,
        "upsert_item": True,
        "upsert_item.answer": True,
    }


@pytest.mark.parametrize(("served", "ids"), [(0, []), (1, []), (2, ["c1"]), (3, ["c1"])])
def test_a_save_stores_its_document_once_it_was_sent(tmp_path, served, ids):
    """Cancelled while the container is made, it stores nothing; afterwards the service knows of no cancellation."""

    async def program():
        storage = storage_of(tmp_path)
        saving = asyncio.ensure_future(storage.save(checkpoint("c1")))
        await asyncio.sleep(0)
        for _ in range(served):
            await point("let one request be served")
        saving.cancel()
        await asyncio.wait([saving])
        assert saving.cancelled()
        await point("later")
        return await storage.list_checkpoint_ids(workflow_name="flow")

    assert execute(program).ending.value == ids


def test_the_latest_is_the_greatest_text_and_of_equals_the_one_created_last(tmp_path):
    """By code point, whatever instant the text means; the in-memory storage compares instants and takes the first."""
    early, late = "2024-01-01T00:00:01+00:00", "2024-01-01T00:00:02+00:00"
    ten_in_berlin, nine_in_london = "2024-07-01T10:00:00+02:00", "2024-07-01T09:00:00+00:00"

    async def program(name):
        return [
            await latest_of(PLUGIN.make_storage(name, tmp_path), *timestamps)
            for timestamps in ((early, late), (late, early), (early, early), (ten_in_berlin, nine_in_london))
        ]

    assert asyncio.run(program("cosmos")) == ["c2", "c1", "c2", "c1"]
    assert asyncio.run(program("memory")) == ["c2", "c1", "c1", "c2"]


def test_a_checkpoint_that_is_saved_again_keeps_its_place_among_equals(tmp_path):
    """The document is replaced; when it was created stays."""

    async def program():
        storage = storage_of(tmp_path)
        assert await latest_of(storage, *["2024-01-01T00:00:01+00:00"] * 2) == "c2"
        await storage.save(checkpoint("c1", "2024-01-01T00:00:01+00:00"))
        assert (await storage.get_latest(workflow_name="flow")).checkpoint_id == "c2"
        return await storage.list_checkpoint_ids(workflow_name="flow")

    assert asyncio.run(program()) == ["c1", "c2"]


def test_two_workflows_may_use_one_id(tmp_path):
    """Each in its partition; the storage refuses to load what it cannot tell apart."""

    async def program():
        storage = storage_of(tmp_path)
        await storage.save(checkpoint("c1"))
        await storage.save(checkpoint("c1", workflow="other"))
        with pytest.raises(Exception, match="Multiple checkpoints found with ID c1"):
            await storage.load("c1")
        return [await storage.list_checkpoint_ids(workflow_name=name) for name in ("flow", "other", "third")]

    assert asyncio.run(program()) == [["c1"], ["c1"], []]


def test_documents_are_copies_with_the_properties_of_the_service():
    """Changing what was sent or read changes nothing."""

    async def program():
        items = await container()
        sent = {"id": "a", "workflow_name": "flow", "list": [1]}
        stored = await items.upsert_item(body=sent)
        sent["list"].append(2)
        stored["list"].append(3)
        first = await items.read_item(item="a", partition_key="flow")
        second = await items.upsert_item(body={"id": "a", "workflow_name": "flow"})
        return first, second

    first, second = asyncio.run(program())
    assert first["list"] == [1]
    assert (first["_rid"], first["_etag"]) == (second["_rid"], '"00000001"')
    assert second["_etag"] == '"00000002"'
    assert set(second) == {"id", "workflow_name", "_rid", "_self", "_etag", "_attachments", "_ts"}


def test_errors_are_those_of_the_client():
    """A document that is not there, an id that is none, a query that the stand-in does not know."""

    async def program():
        items = await container()
        for call in (items.read_item, items.delete_item):
            with pytest.raises(CosmosResourceNotFoundError) as caught:
                await call(item="a", partition_key="flow")
            assert caught.value.status_code == 404
        with pytest.raises(ValueError, match="illegal chars"):
            await items.upsert_item(body={"id": "flow/1", "workflow_name": "flow"})
        with pytest.raises(CosmosHttpResponseError, match="cannot answer 'SELECT VALUE COUNT"):
            await anext(aiter(items.query_items("SELECT VALUE COUNT(1) FROM c")))
        return "done"

    assert execute(program).ending.value == "done"
    assert asyncio.run(program()) == "done"


@pytest.mark.parametrize(
    ("stand_in", "original"),
    [(CosmosClientStandIn, CosmosClient), (DatabaseStandIn, DatabaseProxy), (ContainerStandIn, ContainerProxy)],
)
def test_the_stand_in_takes_what_the_client_takes(stand_in, original):
    """Each method exists there and waits as there; its parameters come in the same order."""
    for name, method in vars(stand_in).items():
        if name.startswith("_"):
            continue
        model = getattr(original, name)
        taken = [
            key for key, item in inspect.signature(method).parameters.items() if item.kind is item.POSITIONAL_OR_KEYWORD
        ]
        spellings = [list(inspect.signature(form).parameters) for form in get_overloads(model) or [model]]
        assert taken in [spelling[: len(taken)] for spelling in spellings]
        assert inspect.iscoroutinefunction(method) == (name != "query_items")
