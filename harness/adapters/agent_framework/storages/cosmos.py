"""The storage of agent-framework-azure-cosmos, on an account in memory.

Owns the name ``cosmos``; must not change the storage, which makes its container during its first operation.
"""

from pathlib import Path
from typing import Any

from agent_framework_azure_cosmos import CosmosCheckpointStorage

from harness.adapters.agent_framework.storages._cosmos_container import CosmosClientStandIn


def make(_directory: Path) -> Any:
    """Return a storage in an empty account."""
    client: Any = CosmosClientStandIn()
    return CosmosCheckpointStorage(cosmos_client=client, database_name="harness", container_name="checkpoints")


PLUGIN = make
