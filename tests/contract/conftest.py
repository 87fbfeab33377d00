"""What suites of several modules share; a suite with a fixture of the same name uses its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from streams.encryption.keyring import sealer_of
from streams.index.edge import EdgeStore
from streams.index.sealed import sealed_store
from streams.inference.llm_client import OpenAiLlm
from streams.inference.llm_memories import MemoryWriter
from streams.inference.resilience import CallGuard
from streams.ports import VectorStore
from streams.settings import Settings
from tests.support.app_memory_requests import writing
from tests.support.encrypted import encrypted
from tests.support.openai_stand_in import SECRET, StandIn, guarding, standing_in
from tests.support.qdrant_wire import WireCheckedStore


@pytest.fixture
def server() -> Iterator[StandIn]:
    """A server whose model says nothing useful yet."""
    with standing_in() as running:
        yield running


@pytest.fixture
async def llm_of(server: StandIn) -> AsyncIterator[Callable[..., OpenAiLlm]]:
    """Makes clients, which are closed in the end."""
    made: list[OpenAiLlm] = []

    def client(guard: CallGuard | None = None, **more: Any) -> OpenAiLlm:
        made.append(OpenAiLlm(server.base_url, "small", SecretStr(SECRET), guard=guard or guarding(), **more))
        return made[-1]

    yield client
    for each in made:
        await each.close()


@pytest.fixture
def llm(llm_of: Callable[..., OpenAiLlm]) -> OpenAiLlm:
    """A client that tries twice, each time for longer than the limit of both."""
    return llm_of()


@pytest.fixture
def writer(llm: OpenAiLlm) -> MemoryWriter:
    """It waits long enough for any model that answers."""
    return writing(llm)


@pytest.fixture(params=["edge", "server", "encrypted"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorStore]:
    """An empty store of each kind."""
    made: VectorStore = (
        WireCheckedStore(embedder="matter")
        if request.param == "server"
        else EdgeStore(tmp_path / "vectors", embedder="matter")
    )
    if request.param == "encrypted":
        made = sealed_store(made, sealer_of(Settings(encryption=encrypted(tmp_path))))
    yield made
    await made.close()
