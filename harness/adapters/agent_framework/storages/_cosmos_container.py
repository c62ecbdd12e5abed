"""A stand-in of the asynchronous Cosmos client: one account in memory, each call of it a request on its way.

Owns databases, containers and documents, and the queries that the storage sends; must not know checkpoints.

A request that was sent is served, also when its caller was cancelled meanwhile: then nobody gets the answer. That a
request never reaches the service is what a search shows that holds it for ever.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from harness.runtime.loop import ControlledLoop
from harness.runtime.ops import Op

_ILLEGAL_ID = re.compile(r"[/\\?#\t\r\n]|[ \n]$")
_QUERY = re.compile(
    r"SELECT (?P<fields>\*|c\.\w+(?:, c\.\w+)*) FROM c WHERE c\.(?P<field>\w+) = (?P<parameter>@\w+)"
    r"(?: ORDER BY c\.(?P<order>\w+) (?P<direction>ASC|DESC))?(?: OFFSET (?P<offset>\d+) LIMIT (?P<limit>\d+))?"
)

Document = dict[str, Any]
T = TypeVar("T")


async def exchange(name: str, serve: Callable[[], T], *, writes: bool = False) -> T:
    """Send the request called ``name`` and return the answer of ``serve``, which runs when the request arrives.

    writes: what was served cannot be taken back, so the answer is an op of its own, and a run can end in between.
    Outside a controlled loop it yields once.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ControlledLoop):
        await asyncio.sleep(0)
        return serve()
    future: asyncio.Future[T] = loop.create_future()

    def arrive(op: Op) -> None:
        answer: Callable[[], None]
        try:
            answer = partial(_set_result, future, serve())
        except Exception as error:  # of the service: its caller gets it
            answer = partial(_set_exception, future, error)
        if future.done():
            return
        if not writes:
            answer()
            return
        done = Op(loop, f"{name}.answer", kind="done", deliver=lambda _: answer(), interesting=True)
        done.owner = op.owner
        loop.park_op(done)

    # A job and not a point: one whose caller has gone is done all the same.
    loop.park_op(Op(loop, name, kind="job", deliver=arrive, interesting=True))
    return await future


def _set_result(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


class CosmosClientStandIn:
    """Stands for ``azure.cosmos.aio.CosmosClient``, and for the account behind it."""

    def __init__(self) -> None:
        self._databases: dict[str, DatabaseStandIn] = {}

    async def create_database_if_not_exists(self, id: str, **_options: Any) -> DatabaseStandIn:
        """Return the database called ``id``."""
        return await exchange(
            "create_database_if_not_exists", lambda: self._databases.setdefault(id, DatabaseStandIn())
        )


class DatabaseStandIn:
    """Stands for ``azure.cosmos.aio.DatabaseProxy``."""

    def __init__(self) -> None:
        self._containers: dict[str, ContainerStandIn] = {}

    async def create_container_if_not_exists(
        self, id: str, partition_key: PartitionKey, **_options: Any
    ) -> ContainerStandIn:
        """Return the container called ``id``; ``partition_key`` counts when it is made."""
        path = str(partition_key.path)
        return await exchange(
            "create_container_if_not_exists", lambda: self._containers.setdefault(id, ContainerStandIn(path))
        )


class ContainerStandIn:
    """Stands for ``azure.cosmos.aio.ContainerProxy``: documents as JSON text, by partition and id.

    path: of the partition key, one property deep. invariant: ``_documents`` is in the order of ``_rid``, which a
    document keeps when it is replaced.
    """

    def __init__(self, path: str) -> None:
        self._partition = path.removeprefix("/")
        self._documents: dict[tuple[Any, str], str] = {}
        self._created = 0
        self._writes = 0

    async def upsert_item(self, body: Document, **_options: Any) -> Document:
        """Store ``body``, in place of the document with its id if there is one; return what is stored."""
        if _ILLEGAL_ID.search(body["id"]):  # as azure.cosmos._base._validate_resource
            raise ValueError("Id contains illegal chars.")
        sent = json.dumps(body)
        return await exchange("upsert_item", lambda: self._write(sent), writes=True)

    async def read_item(self, item: str, partition_key: Any, **_options: Any) -> Document:
        """Return a document; raises CosmosResourceNotFoundError when there is none."""
        key = partition_key, item
        found = await exchange("read_item", lambda: self._found(key))
        return dict(json.loads(found))

    async def delete_item(self, item: str, partition_key: Any, **_options: Any) -> None:
        """Remove a document; raises CosmosResourceNotFoundError when there is none."""
        key = partition_key, item

        def remove() -> None:
            self._found(key)
            del self._documents[key]

        await exchange("delete_item", remove, writes=True)

    def query_items(
        self, query: str, *, parameters: Sequence[Document] = (), partition_key: Any = None, **_options: Any
    ) -> PagedStandIn:
        """Return an asynchronous iterator over what ``query`` selects, of one partition or of all."""
        values = {str(item["name"]): item["value"] for item in parameters}
        return PagedStandIn(lambda: self._select(query, values, partition_key))

    def _write(self, sent: str) -> Document:
        document: Document = json.loads(sent)
        key = document.get(self._partition), document["id"]
        self._writes += 1
        if key in self._documents:
            rid = json.loads(self._documents[key])["_rid"]
        else:
            self._created += 1
            rid = f"{self._created:012d}"
        document |= {"_rid": rid, "_self": f"docs/{rid}/", "_etag": f'"{self._writes:08d}"', "_attachments": ""}
        document["_ts"] = int(time.time())
        self._documents[key] = json.dumps(document)
        return document

    def _found(self, key: tuple[Any, str]) -> str:
        if key not in self._documents:
            raise CosmosResourceNotFoundError(  # type: ignore[no-untyped-call]  # azure.cosmos leaves its errors untyped
                status_code=404, message=f"Resource with id {key[1]!r} not found"
            )
        return self._documents[key]

    def _select(self, query: str, values: Document, partition_key: Any) -> list[Document]:
        parts = _QUERY.fullmatch(" ".join(query.split()))
        if parts is None or parts["parameter"] not in values:
            raise CosmosHttpResponseError(  # type: ignore[no-untyped-call]  # as above
                status_code=400, message=f"the stand-in cannot answer {query!r}"
            )
        documents: list[Document] = [
            json.loads(text)
            for (partition, _), text in self._documents.items()
            if partition_key is None or partition == partition_key
        ]
        documents = [item for item in documents if item.get(parts["field"]) == values[parts["parameter"]]]
        if parts["order"] is not None:
            # Text by code point, and no document without the property. Of equals the service promises nothing; the
            # SDKs assume the order of _rid in the direction of the first property when they go on after a page.
            documents = sorted(
                (item for item in documents if parts["order"] in item),
                key=lambda item: (item[parts["order"]], item["_rid"]),
                reverse=parts["direction"] == "DESC",
            )
        if parts["limit"] is not None:
            first = int(parts["offset"])
            documents = documents[first : first + int(parts["limit"])]
        if parts["fields"] == "*":
            return documents
        names = [name.removeprefix("c.") for name in parts["fields"].split(", ")]
        return [{name: item[name] for name in names if name in item} for item in documents]


class PagedStandIn:
    """Stands for ``CosmosAsyncItemPaged``; one page holds everything, and is asked for with the first item.

    No generator: an iterator that is left early needs no clean-up, as in azure.core.async_paging.
    """

    def __init__(self, select: Callable[[], list[Document]]) -> None:
        self._select = select
        self._rest: list[Document] | None = None

    def __aiter__(self) -> PagedStandIn:
        return self

    async def __anext__(self) -> Document:
        if self._rest is None:
            self._rest = await exchange("query_items", self._select)
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop(0)
