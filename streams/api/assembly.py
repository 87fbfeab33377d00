"""Everything that reads and puts right memory over HTTP, over one store, behind the tenants' border.

Whoever serves memory makes it here: the readers below never get the store itself, only what the caller may read of it.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, TypedDict, Unpack

import structlog

from models.policy import Policy
from models.policy.app import AppPolicy
from streams.api.apps.context import AppContext
from streams.api.apps.routes import AppMemoryAdmin
from streams.api.apps.statistics import AppStatistics
from streams.api.commands import CommandSender, EventWriter, SpaceCommands, project_commands, user_commands
from streams.api.erase.routes import Erasures
from streams.api.listed import LISTINGS
from streams.api.live.routes import SearchRoutes
from streams.api.live.service import LivePage
from streams.api.mcp.endpoint import McpEndpoint
from streams.api.projects.accesses import AccessRecorder
from streams.api.projects.commands import ProjectCommandRoutes
from streams.api.projects.items import ProjectItems
from streams.api.projects.reading import ProjectReader
from streams.api.sessions.changes import SessionChanges
from streams.api.sessions.history import HistoryReader
from streams.api.sessions.topics import TopicReader
from streams.api.sessions.turns import KnowsSessions, SessionReader
from streams.api.users.facts import FactRoutes
from streams.api.users.reading import MemoryReader
from streams.archive.history import ArchivedTurns
from streams.erase.record import KafkaEraseRequests
from streams.gateway.gateway import Gateway
from streams.http.answering import ServedRoute, served_routes
from streams.http.audit import BatchedAudit
from streams.http.health import Endpoint
from streams.http.security import asking, is_loopback
from streams.index.app_memory import AppMemoryIndex
from streams.index.generations import WrappedStore
from streams.index.hybrid_search import HybridSearch
from streams.index.project_memory import ProjectMemories
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.inference.tokens import token_counter
from streams.masking.records import masker_of, quoting
from streams.ports import Condition, Embedder, StoredPoint, VectorStore
from streams.settings.http import HttpSettings

log = structlog.get_logger(__name__)

_APP = "app_id"


class Beside(TypedDict, total=False):
    """What a role that serves memory has beside the store; what it has not is not served, or refused."""

    commands: CommandSender | None
    """Where what admins do goes; None: such requests are refused."""
    erasures: KafkaEraseRequests | None
    """Where requests to forget somebody go; None: likewise."""
    audit: BatchedAudit | None
    """Takes records of what is read and done; None: nothing is noted."""
    live: LivePage | None
    """The live page; None: it is not served."""
    writer: EventWriter | None
    """Where events of sessions go; None: such requests are refused."""
    archive: ArchivedTurns | None
    """Where turns are that the index gave up; None: nowhere."""
    gateway: Gateway | None
    """Where turns go that a tool is given; None: it is not served."""
    taking: Sequence[ServedRoute]
    """Routes that take turns, as the gateway has them; none: they are refused."""


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
    at_end: Callable[[], bool | None] = lambda: None,
    **beside: Unpack[Beside],
) -> MemoryApi:
    """Routes and tools over a store.

    Args:
        store: As the index role fills it.
        embedder: Embeds queries; must be the one whose vectors the store holds.
        policy: How much is kept, half-lives, and how rankings are fused.
        http: Whether the MCP tools are served, and to whom; what counts tokens.
        topic_prefix: Of the topics that are indexed.
        at_end: Whether the logs of users' memory are read to their end; None: it cannot be told here.
        **beside: What the role has beside the store.

    Raises:
        ConfigurationError: There is no such counter of tokens here.
    """
    scoped, keep_turns = ScopedStore(store), policy.memory.stored_vectors
    commands, erasures = beside.get("commands"), beside.get("erasures")
    live, archive, audit = beside.get("live"), beside.get("archive"), beside.get("audit")
    turns = SessionVectorMemory(scoped, embedder, keep_turns=keep_turns)
    topics = TopicMemory(
        scoped, embedder, turns, keep_turns=keep_turns, forgotten_after=policy.session.closed_retention
    )
    users, apps = UserMemory(scoped, embedder), AppMemoryIndex(scoped, embedder)
    search = HybridSearch(scoped, embedder, policy.retrieval)
    reader = MemoryReader(
        users,
        turns,
        search,
        episode_distance=embedder.episode_distance,
        apps=AppContext(apps, policy.apps),
        policy=policy.prompts,
        at_end=at_end,
    )
    waiting, masker = reader.waiting, masker_of(policy.masking, personal=policy.masking.at_index)
    shown = str if masker is None else masker.text
    history = HistoryReader(scoped, turns, archive, waiting, keep_turns=keep_turns, shown=shown)
    projects, accesses = ProjectMemories(scoped, embedder, policy.projects, reads=reads), AccessRecorder(commands)
    project_reader = ProjectReader(
        projects, turns, history, accesses.record, policy.projects, tokens=token_counter(http.token_counter)
    )
    command_routes = ProjectCommandRoutes(project_reader, project_commands(commands, projects))
    listings = [each(scoped) for each in LISTINGS]
    sessions = SessionReader(turns, users, topic_prefix=topic_prefix, waiting=reader.waiting)
    spaces = SpaceCommands(commands, apps)
    facts = FactRoutes(users, user_commands(commands, users), spaces)
    changes = SessionChanges(turns, topics, scoped, beside.get("writer"), archive)
    topic_reader = TopicReader(topics, policy.topics, waiting, archive, shown=shown)
    routes = (
        *served_routes(*listings, facts, reader, sessions, history, topic_reader, changes),
        *served_routes(project_reader, command_routes, ProjectItems(project_reader)),
        *admin_routes(apps, policy.apps, commands, erasures, turns),
        *(() if live is None else live.routes(scoped, turns, topics, users, search, quoted=quoting(policy.masking))),
        *(() if live is None else served_routes(SearchRoutes(apps, spaces))),
        *beside.get("taking", ()),
    )
    erasing = None if erasures is None else Erasures(erasures, turns)
    memory = reader, project_reader, command_routes, listings, facts, history, changes, erasing, beside.get("gateway")
    tools = _tools(http, *memory)
    noting = () if audit is None else (audit,)  # closed last: what the others still do is noted
    watched = () if live is None else (live,)
    return MemoryApi(routes, (*noting, *tools, accesses, *watched), reader)


def admin_routes(
    apps: AppMemoryIndex,
    policy: AppPolicy,
    commands: CommandSender | None,
    erasures: KafkaEraseRequests | None,
    sessions: KnowsSessions,
) -> list[ServedRoute]:
    """Routes of admins, in the order in which they must be asked."""
    commanding = AppMemoryAdmin(apps, SpaceCommands(commands, apps), policy)
    return served_routes(AppStatistics(apps), commanding, Erasures(erasures, sessions))


def _tools(http: HttpSettings, *memory: Any) -> tuple[Endpoint, ...]:
    """The tools over what `AskedMemory` has, in its order."""
    if not http.mcp:
        return ()
    if find_spec("mcp") is None:
        log.info("mcp_not_served", reason="the package `mcp` is not installed: install `turntide[mcp]`")
        return ()
    return (McpEndpoint(*memory, loopback=is_loopback(http.host), max_body_bytes=http.max_body_bytes),)


class ScopedStore(WrappedStore):
    """A `streams.ports.VectorStore` that adds the caller's apps to the conditions of every read.

    Memories that serve requests are made over this, so that no route, no tool and no later one can forget it. Outside
    of a request, where the role itself reads and writes, it adds nothing.

    Args:
        store: The one that is read.
    """

    def scoped(self, where: Mapping[str, Condition]) -> Mapping[str, Condition] | None:
        """The conditions with the caller's apps; None if they ask for another app."""
        caller = asking()
        if caller is None or caller.apps is None:
            return where
        if _APP not in where:
            apps = tuple(sorted(caller.apps))
            return {**where, _APP: apps[0] if len(apps) == 1 else apps}
        wanted = where[_APP]
        named = wanted if isinstance(wanted, tuple) else (wanted,)
        return where if caller.apps.issuperset(named) else None

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Those of the store's page that the caller may read."""
        stored, following = await super().page(collection, after, limit)
        return [each for each in stored if reads(str(each.payload.get(_APP, "")))], following


def reads(app_id: str) -> bool:
    """Whether the caller, if there is one, may read an app."""
    caller = asking()
    return caller is None or caller.may_read(app_id)
