"""What suites of several modules share; a suite with a fixture of the same name uses its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from streams.index.edge import EdgeStore
from streams.index.server import ServerStore
from streams.inference.llm_client import OpenAiLlm
from streams.inference.llm_memories import MemoryWriter
from streams.inference.openai_failures import judge
from streams.inference.resilience import Guard, Retry
from streams.ports import VectorStore
from tests.app_memory_requests import writing
from tests.openai_stand_in import StandIn, standing_in


@pytest.fixture
def server() -> Iterator[StandIn]:
    """A server whose model says nothing useful yet."""
    with standing_in() as running:
        yield running


@pytest.fixture
async def llm(server: StandIn) -> AsyncIterator[OpenAiLlm]:
    """A client that tries twice, each time for longer than the limit of both."""

    async def at_once(_seconds: float) -> None:
        """No wait."""

    client = OpenAiLlm(
        server.base_url,
        "small",
        guard=Guard("model", judge, Retry(timeout=timedelta(seconds=30), tries=2), sleep=at_once),
    )
    yield client
    await client.close()


@pytest.fixture
def writer(llm: OpenAiLlm) -> MemoryWriter:
    """It waits long enough for any model that answers."""
    return writing(llm)


@pytest.fixture(params=["edge", "server"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorStore]:
    """An empty store of each kind."""
    made: VectorStore = (
        EdgeStore(tmp_path / "vectors", embedder="matter")
        if request.param == "edge"
        else ServerStore(AsyncQdrantClient(":memory:"), embedder="matter")
    )
    yield made
    await made.close()
