"""Everything that reads memory over HTTP, put together over one store, behind the tenants' border.

Whoever serves memory makes it here: the readers below never get the store itself, only what the caller may read of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import structlog
from fastapi import APIRouter

from models.policy import Policy
from streams.api.health import Endpoint
from streams.api.memory import memory_router
from streams.api.reading import MemoryReader
from streams.api.security import is_loopback
from streams.api.similar import index_router, similar_router
from streams.api.tenancy import ScopedStore
from streams.api.topics import topics_router
from streams.api.visibility import MemoryVisibility
from streams.ports import Embedder, VectorStore
from streams.retrieval import HybridSearch
from streams.settings import HttpSettings
from streams.vectors.session_memory import SessionVectorMemory
from streams.vectors.topic_memory import TopicMemory
from streams.vectors.user_memory import UserMemory

log = structlog.get_logger(__name__)


class MemoryApi(NamedTuple):
    """What `health.create_api` serves of memory.

    Attributes:
        routers: In the order in which they are asked.
        endpoints: The MCP tools, if they are wanted and installed.
        reader: Retrieval as a Python function; it reads for the caller of a request.
    """

    routers: tuple[APIRouter, ...]
    endpoints: tuple[Endpoint, ...]
    reader: MemoryReader


def memory_api(
    store: VectorStore,
    embedder: Embedder,
    policy: Policy,
    http: HttpSettings,
    *,
    topic_prefix: str,
) -> MemoryApi:
    """Routes and tools over a store.

    Args:
        store: As the index role fills it.
        embedder: Embeds queries; must be the one whose vectors the store holds.
        policy: How much is kept, half-lives, and how rankings are fused.
        http: Whether the MCP tools are served, and to whom.
        topic_prefix: Of the topics that are indexed.
    """
    scoped, keep_turns = ScopedStore(store), policy.memory.stored_vectors
    turns = SessionVectorMemory(scoped, embedder, keep_turns=keep_turns)
    topics = TopicMemory(
        scoped, embedder, turns, keep_turns=keep_turns, forgotten_after=policy.session.closed_retention
    )
    users = UserMemory(scoped, embedder)
    reader = MemoryReader(
        users,
        turns,
        HybridSearch(scoped, embedder, policy.retrieval),
        MemoryVisibility(turns, users),
        episode_distance=embedder.episode_distance,
    )
    routers = (
        memory_router(reader),
        similar_router(turns),
        index_router(turns, topic_prefix=topic_prefix),
        topics_router(topics, policy.topics),
    )
    return MemoryApi(routers, _tools(reader, http), reader)


def _tools(reader: MemoryReader, http: HttpSettings) -> tuple[Endpoint, ...]:
    if not http.mcp:
        return ()
    if find_spec("mcp") is None:
        log.info("mcp_not_served", reason="the package `mcp` is not installed: install `turntide[mcp]`")
        return ()
    from streams.api.mcp import McpEndpoint  # noqa: PLC0415 - extra `mcp`, and it takes a second to import

    return (McpEndpoint(reader, loopback=is_loopback(http.host), max_body_bytes=http.max_body_bytes),)
