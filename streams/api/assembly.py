"""Everything that reads and puts right memory over HTTP, over one store, behind the tenants' border.

Whoever serves memory makes it here: the readers below never get the store itself, only what the caller may read of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import structlog

from models.policy import Policy
from models.policy.app import AppPolicy
from streams.api.apps import ports as apps_ports
from streams.api.apps.context import AppContext
from streams.api.apps.routes import AppMemoryAdmin
from streams.api.apps.statistics import AppStatistics
from streams.api.commands import SpaceCommands, project_commands
from streams.api.erase.routes import Erasures
from streams.api.listed import LISTINGS, Listing
from streams.api.live.service import LivePage
from streams.api.projects.accesses import AccessRecorder
from streams.api.projects.commands import ProjectDeeds
from streams.api.projects.reading import ProjectReader
from streams.api.projects.routes import project_routes
from streams.api.sessions.topics import TopicReader
from streams.api.sessions.turns import SessionReader
from streams.api.users.ports import CommandSender, EraseRequests
from streams.api.users.reading import MemoryReader
from streams.api.users.visibility import MemoryVisibility
from streams.http.answering import ServedRoute, served_routes
from streams.http.health import Endpoint
from streams.http.own_machine import is_loopback
from streams.http.tenancy import ScopedStore, reads
from streams.index.app_memory import AppMemories
from streams.index.hybrid_search import HybridSearch
from streams.index.project_memory import ProjectMemories
from streams.index.session_memory import SessionVectorMemory
from streams.index.topic_memory import TopicMemory
from streams.index.user_memory import UserMemory
from streams.inference.tokens import token_counter
from streams.ports import Embedder, VectorStore
from streams.settings.http import HttpSettings

log = structlog.get_logger(__name__)


class MemoryApi(NamedTuple):
    """What `health.create_api` serves of memory.

    Attributes:
        routes: In the order in which they are asked.
        endpoints: The MCP tools, if they are wanted and installed, and what writes beside the answers.
        reader: Retrieval as a Python function; it reads for the caller of a request.
    """

    routes: tuple[ServedRoute, ...]
    endpoints: tuple[Endpoint, ...]
    reader: MemoryReader


def memory_api(
    store: VectorStore,
    embedder: Embedder,
    policy: Policy,
    http: HttpSettings,
    *,
    topic_prefix: str,
    commands: CommandSender | None = None,
    erasures: EraseRequests | None = None,
    audit: Endpoint | None = None,
    live: LivePage | None = None,
) -> MemoryApi:
    """Routes and tools over a store.

    Args:
        store: As the index role fills it.
        embedder: Embeds queries; must be the one whose vectors the store holds.
        policy: How much is kept, half-lives, and how rankings are fused.
        http: Whether the MCP tools are served, and to whom; what counts tokens.
        topic_prefix: Of the topics that are indexed.
        commands: Where admins' commands go; None: routes that write answer 503.
        erasures: Where erasures go; None: likewise.
        audit: Takes records of what is read and done (`audit.AuditLog`); None: nothing is noted.
        live: The live page; None: it is not served.

    Raises:
        ConfigurationError: There is no such counter of tokens here.
    """
    scoped, keep_turns = ScopedStore(store), policy.memory.stored_vectors
    turns = SessionVectorMemory(scoped, embedder, keep_turns=keep_turns)
    topics = TopicMemory(
        scoped, embedder, turns, keep_turns=keep_turns, forgotten_after=policy.session.closed_retention
    )
    users, apps = UserMemory(scoped, embedder), AppMemories(scoped, embedder)
    search = HybridSearch(scoped, embedder, policy.retrieval)
    reader = MemoryReader(
        users,
        turns,
        search,
        MemoryVisibility(turns, users),
        episode_distance=embedder.episode_distance,
        apps=AppContext(apps, policy.apps),
    )
    projects, accesses = ProjectMemories(scoped, embedder, policy.projects, reads=reads), AccessRecorder(commands)
    project_reader = ProjectReader(projects, turns, accesses, policy.projects, tokens=token_counter(http.token_counter))
    deeds = ProjectDeeds(project_reader, project_commands(commands, projects))
    listings = [each(scoped) for each in LISTINGS]
    routes = (
        *served_routes(
            *listings, reader, SessionReader(turns, topic_prefix=topic_prefix), TopicReader(topics, policy.topics)
        ),
        *project_routes(project_reader, deeds),
        *admin_routes(apps, policy.apps, commands, erasures),
        *(() if live is None else live.routes(scoped, turns, topics, users, search)),
    )
    tools = _tools(http, reader, project_reader, deeds, listings)
    noting = () if audit is None else (audit,)  # closed last: what the others still do is noted
    watched = () if live is None else (live,)
    return MemoryApi(routes, (*noting, *tools, accesses, *watched), reader)


def admin_routes(
    apps: apps_ports.AppMemories, policy: AppPolicy, commands: CommandSender | None, erasures: EraseRequests | None
) -> list[ServedRoute]:
    """Routes of admins, in the order in which they must be asked."""
    commanding = AppMemoryAdmin(apps, SpaceCommands(commands, apps), policy)
    return served_routes(AppStatistics(apps), commanding, Erasures(erasures))


def _tools(
    http: HttpSettings, reader: MemoryReader, projects: ProjectReader, deeds: ProjectDeeds, listings: Sequence[Listing]
) -> tuple[Endpoint, ...]:
    if not http.mcp:
        return ()
    if find_spec("mcp") is None:
        log.info("mcp_not_served", reason="the package `mcp` is not installed: install `turntide[mcp]`")
        return ()
    from streams.api.mcp.server import McpEndpoint  # noqa: PLC0415 - extra `mcp`, and it takes a second to import
    from streams.api.mcp.tools import AskedMemory  # noqa: PLC0415 - likewise

    memory = AskedMemory(reader, projects, deeds, listings)
    return (McpEndpoint(memory, loopback=is_loopback(http.host), max_body_bytes=http.max_body_bytes),)
