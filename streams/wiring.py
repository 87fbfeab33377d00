"""The only place that constructs clients: settings in, a running role out.

A role's own imports are made when it is wanted, so that a sessions worker does not load a vector store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec import structs

from models.errors import ConfigurationError
from models.policy import Policy, load_policy
from models.risk.scorer import RuleScorer
from streams.ports import Embedder, VectorStore
from streams.settings import Settings

RunRole = Callable[[Settings, asyncio.Event], Awaitable[None]]


def policy_of(settings: Settings) -> Policy:
    """The policy file's, or the seeds' defaults; where it names no threshold for topics, with the embedder's own.

    No weights are loaded.

    Raises:
        ConfigurationError: The file cannot be read or is wrong.
    """
    policy = _policy_from(settings.policy_file)
    if policy.topics.similarity_threshold is not None:
        return policy
    topics = structs.replace(policy.topics, similarity_threshold=_embedder_type(settings).topic_similarity)
    return structs.replace(policy, topics=topics)


def _policy_from(path: Path | None) -> Policy:
    if path is None:
        return Policy()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"policy_file {path}: {error.strerror}. Name a readable TOML or JSON file.") from error
    return load_policy(data, "json" if path.suffix == ".json" else "toml")


def embedder_of(settings: Settings) -> Embedder:
    """The embedder that the settings name."""
    return _embedder_type(settings)()


def _embedder_type(settings: Settings) -> type[Embedder]:
    """Its class; weights are loaded by making one."""
    if settings.vectors.embedder == "minilm":
        from streams.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - extra `minilm`

        return MiniLmEmbedder
    from streams.embed.wordllama import WordLlamaEmbedder  # noqa: PLC0415 - its libraries take a while to import

    return WordLlamaEmbedder


def vector_store_of(settings: Settings, embedder: Embedder) -> VectorStore:
    """A Qdrant server if one is named, else Qdrant Edge under the data directory."""
    vectors = settings.vectors
    if not vectors.url:
        from streams.vectors.edge import EdgeStore  # noqa: PLC0415 - extra `local`

        return EdgeStore(settings.data_dir / "vectors", embedder=embedder.name)
    from streams.vectors.server import ServerStore  # noqa: PLC0415 - extra `vectors`

    return ServerStore.connect(vectors.url, api_key=vectors.api_key, embedder=embedder.name)


async def run_sessions(settings: Settings, stop: asyncio.Event) -> None:
    """Fold sessions."""
    from streams.roles.sessions import SessionsRole  # noqa: PLC0415

    role = SessionsRole(settings, policy_of(settings), embedder_of(settings), RuleScorer())
    await role.run(stop)


async def run_memory(settings: Settings, stop: asyncio.Event) -> None:
    """Fold users."""
    from streams.roles.memory import MemoryRole  # noqa: PLC0415

    await MemoryRole(settings, policy_of(settings)).run(stop)


async def run_enrich(settings: Settings, stop: asyncio.Event) -> None:
    """Answer what the memory role asks for."""
    from streams.llm.summaries import ExtractiveSummariser  # noqa: PLC0415
    from streams.roles.enrich import EnrichRole  # noqa: PLC0415

    await EnrichRole(settings, embedder_of(settings), ExtractiveSummariser(policy_of(settings)), None).run(stop)


async def run_index(settings: Settings, stop: asyncio.Event) -> None:
    """Index turns and serve reading."""
    from streams.roles.index import IndexRole  # noqa: PLC0415

    embedder = embedder_of(settings)
    role = IndexRole(settings, policy_of(settings), embedder, RuleScorer(), vector_store_of(settings, embedder))
    await role.run(stop)


async def run_archive(settings: Settings, stop: asyncio.Event) -> None:
    """Land every topic in Parquet."""
    from streams.roles import archive  # noqa: PLC0415

    await archive.run(settings, stop=stop)


async def run_notify(settings: Settings, stop: asyncio.Event) -> None:
    """Deliver alerts to the configured sinks."""
    from streams.notify import relay  # noqa: PLC0415

    await relay.run(settings, stop=stop)


ROLES: Mapping[str, RunRole] = {
    "sessions": run_sessions,
    "memory": run_memory,
    "enrich": run_enrich,
    "index": run_index,
    "archive": run_archive,
    "notify": run_notify,
}
"""Every role a worker can have."""
