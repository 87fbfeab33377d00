"""The role's HTTP app over memories in this process: real turns and topics, doubles of users and search.

The doubles give whatever was put in, of every app where none is named, so that a test sees what the API itself holds
back. Distances and scores come from shared words.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any
from unittest.mock import MagicMock

import httpx
from msgspec.structs import replace
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient
from starlette.types import ASGIApp, Receive

from models.errors import DeliveryFailed
from models.events import AccessAudited, CommandResult, Position, Role, SessionName, Turn
from models.events.user import EpisodeCompressed, FactCategory, FactChanged, SessionTurns, UserMemoryChanged
from models.policy import Policy
from models.policy.app import AppPolicy
from models.text.words import fold_text, words_of
from streams.api.apps.context import AppContext
from streams.api.assembly import ScopedStore, admin_routes
from streams.api.commands import SpaceCommands, project_commands, user_commands
from streams.api.erase.routes import Erasures as ErasureRoutes
from streams.api.live.routes import SearchRoutes
from streams.api.live.service import LivePage
from streams.api.mcp.endpoint import McpEndpoint
from streams.api.projects.commands import ProjectCommandRoutes
from streams.api.projects.items import ProjectItems
from streams.api.projects.reading import ProjectReader
from streams.api.sessions.changes import SessionChanges
from streams.api.sessions.history import HistoryReader
from streams.api.sessions.topics import TopicReader
from streams.api.sessions.turns import SessionReader
from streams.api.users.facts import FactRoutes
from streams.api.users.reading import MemoryReader
from streams.http.answering import served_routes
from streams.http.audit import BatchedAudit
from streams.index.between import ALWAYS, Between
from streams.index.collections import EPISODES, FACTS, USERS
from streams.index.hybrid_search import FoundTurn, HybridSearch, Scope
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.observe.telemetry import metrics
from streams.settings import load_settings
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_apps import Apps, Erasures
from tests.support.api_projects import Projects
from tests.support.http_api import api_of, client_of
from tests.support.loaded import loaded_embedder

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def token_of(app: str) -> str:
    """The token of an app's callers."""
    return f"token-of-the-app-{app}"


def settings_of(*apps: str, admin: bool = False, **more: Any) -> HttpSettings:
    """Settings with one token for each app."""
    role = TokenRole.ADMIN if admin else TokenRole.READER
    tokens = [ApiToken(token=SecretStr(token_of(app)), apps=[app], role=role, name=f"admin-{app}") for app in apps]
    return HttpSettings(tokens=tokens, **more)


def bearer(app: str) -> dict[str, str]:
    """Headers of an app's caller."""
    return {"Authorization": f"Bearer {token_of(app)}"}


def fact(key: str, value: str, *, app: str = "a", user: str = "u", **more: Any) -> FactChanged:
    """A fact that holds."""
    given = {"confidence": 1.0, "importance": 0.8, "active": True, "valid_from": AT, "session_id": "s", "turn": 0}
    given |= {"extracted_by": "rules"}
    found = FACTS.event_of({"category": "identity"})
    return replace(found, app_id=app, user_id=user, key=key, value=value, **{**given, **more})


def episode(number: int, summary: str, *, app: str = "a", user: str = "u", **more: Any) -> EpisodeCompressed:
    """The user's episode of this number, of 20 turns."""
    first, last = 20 * number - 19, 20 * number
    given = {"first_turn": first, "last_turn": last, "turn_range": f"turns {first}-{last}"}
    given |= {"summarised_by": "extractive", "started_at": AT, "ended_at": AT}
    found = EPISODES.event_of({"episode": number, "summary": summary})
    return replace(found, app_id=app, user_id=user, **{**given, **more})


def stats(*refs: tuple[str, int], app: str = "a", user: str = "u", **more: Any) -> UserMemoryChanged:
    """A user whose last turns are these."""
    found = USERS.event_of({"turn_count": len(refs)})
    turns = [SessionTurns(session, [turn]) for session, turn in refs]
    return replace(found, app_id=app, user_id=user, short_term=turns, **more)


def said(turn: int, content: str, *, app: str = "a", user: str = "u", session: str = "s", **more: Any) -> Turn:
    """A turn of a user."""
    more.setdefault("role", Role.USER)
    return Turn(session_id=session, user_id=user, app_id=app, turn=turn, content=content, timestamp=AT, **more)


def _overlap(query: str, text: str) -> float:
    wanted, has = set(words_of(fold_text(query))), set(words_of(fold_text(text)))
    return len(wanted & has) / max(1, len(wanted))


@dataclass
class Users(UserMemory):
    """A `UserMemory` that gives what was put in."""

    known_facts: list[FactChanged] = field(default_factory=list)
    known_episodes: list[EpisodeCompressed] = field(default_factory=list)
    known_users: list[UserMemoryChanged] = field(default_factory=list)

    async def send(self, command: Any) -> Position:
        """A command is done at once, whatever it says."""
        done = CommandResult(request_id=command.request_id, outcome="done", count=1)
        self.known_users = [
            replace(each, results=[done]) if _is_of(each, command.app_id, command.user_id) else each
            for each in self.known_users
        ]
        return Position("commands.v1", 0, 9)

    async def accept(self, _turns: Any, _name: Any) -> list[Any]:
        """Turns are as good as written."""
        return []

    async def write(self, topic: str, record: Any) -> Position:
        """An event is in the log, and nothing comes of it."""
        return Position(topic, record.partition or 0, 9)

    async def facts(
        self,
        app_id: str | None,
        user_id: str,
        *,
        min_importance: float = 0.0,
        category: FactCategory | None = None,
        include_past: bool = False,
    ) -> list[FactChanged]:
        """As the real one."""
        found = [
            each
            for each in self.known_facts
            if _is_of(each, app_id, user_id)
            and each.importance >= min_importance
            and category in {None, each.category}
            and (each.active or include_past)
        ]
        return sorted(found, key=lambda each: (not each.active, -each.importance, each.key))

    async def episodes(self, app_id: str | None, user_id: str, *, limit: int) -> list[EpisodeCompressed]:
        """As the real one."""
        return [each for each in self.known_episodes if _is_of(each, app_id, user_id)][::-1][:limit]

    async def find_episodes(
        self,
        app_id: str | tuple[str, ...] | None,
        user_id: str,
        query: str,
        *,
        max_distance: float,
        top_k: int,
        between: Between = ALWAYS,
    ) -> list[tuple[EpisodeCompressed, float]]:
        """As the real one; the distance is the share of the query's words that the summary lacks."""
        mine = [each for each in self.known_episodes if _is_of(each, app_id, user_id)]
        mine = [each for each in mine if between.meets(each.started_at, each.ended_at)]
        far = [(each, 1 - _overlap(query, each.summary)) for each in mine]
        return sorted((each for each in far if each[1] <= max_distance), key=itemgetter(1))[:top_k]

    async def standings(self, app_id: str | None, user_id: str) -> list[UserMemoryChanged]:
        """As the real one."""
        return [each for each in self.known_users if _is_of(each, app_id, user_id)]


@dataclass
class Search(HybridSearch):
    """A `HybridSearch` over what the users and the memory of turns have."""

    users: Users
    turns_of: dict[SessionName, SessionVectorMemory]
    asked: list[Scope] = field(default_factory=list)

    async def turns(self, query: str, scope: Scope, top_k: int) -> list[FoundTurn]:
        """Turns of every session that was put in, whatever the scope says of apps."""
        self.asked.append(scope)
        found = []
        for session, memory in self.turns_of.items():
            if scope.session_id in {None, session.session_id}:
                found += await memory.last_turns(session, 100)
        mine = [
            turn
            for turn in found
            if scope.user_id in {None, turn.user_id} and scope.between.meets(turn.timestamp, turn.timestamp)
        ]
        hits = [FoundTurn(turn, _overlap(query, turn.content)) for turn in mine]
        return sorted((hit for hit in hits if hit.score > 0), key=lambda hit: -hit.score)[:top_k]

    async def episodes(self, query: str, scope: Scope, top_k: int) -> list[tuple[EpisodeCompressed, float]]:
        """Episodes of every app, whatever the scope says of apps."""
        self.asked.append(scope)
        mine = [each for each in self.users.known_episodes if scope.user_id in {None, each.user_id}]
        hits: list[tuple[EpisodeCompressed, float]] = [(each, _overlap(query, each.summary)) for each in mine]
        return sorted((hit for hit in hits if hit[1] > 0), key=lambda hit: -hit[1])[:top_k]


class Log(BatchedAudit):
    """An audit in a list.

    Attributes:
        away: Whether nothing can be written.
    """

    def __init__(self, *, required: bool = False) -> None:
        self.required = required
        self.away = False
        self.events: list[AccessAudited] = []

    def record(self, event: AccessAudited) -> None:
        """As the real one."""
        self.events.append(event)

    async def write(self, event: AccessAudited) -> None:
        """As the real one."""
        if self.away:
            raise DeliveryFailed("away")
        self.record(event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Nothing is kept open."""
        yield


class Served:
    """An app as the index role has it, over a store without network; with a log, also the live page, over nothing.

    Attributes:
        tools: The MCP tools, which answer while they run.
        users: What is known of users.
        turns: Turns, read through the tenants' border.
        topics: Topics, likewise.
        apps: Memories of apps, and what carries out commands to them.
        projects: Memory of projects, likewise.
        erasures: Takes erasures.
    """

    def __init__(
        self,
        *,
        settings: HttpSettings | None = None,
        log: Log | None = None,
        apps: AppPolicy | None = None,
        **more: Any,
    ) -> None:
        self.embedder = loaded_embedder()
        self.store = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama")
        scoped = ScopedStore(self.store)
        self.users = Users()
        self.turns = SessionVectorMemory(scoped, self.embedder)
        self.topics = TopicMemory(scoped, self.embedder, self.turns)
        self.sessions: dict[SessionName, SessionVectorMemory] = {}
        self.search = Search(self.users, self.sessions)
        self.apps = Apps()
        self.erasures = Erasures()
        self.projects = Projects()
        self.reader = MemoryReader(
            self.users, self.turns, self.search, episode_distance=0.7, apps=AppContext(self.apps), **more
        )
        spaces = SpaceCommands(self.apps, self.apps)
        facts = FactRoutes(self.users, user_commands(self.users, self.users), spaces)
        history = HistoryReader(scoped, self.turns, None, self.reader.waiting, keep_turns=1_000)
        reads = self.turns, history, self.projects.record, self.projects.policy.projects
        project_reader = ProjectReader(self.projects, *reads, now=self.projects.clock)
        commands = ProjectCommandRoutes(project_reader, project_commands(self.projects, self.projects))
        changes, forget = (
            SessionChanges(self.turns, self.topics, scoped, self.users, None),
            ErasureRoutes(self.erasures, self.turns),
        )
        gateway: Any = self.users
        self.tools = McpEndpoint(self.reader, project_reader, commands, (), facts, history, changes, forget, gateway)
        self.app = api_of(
            [
                *served_routes(
                    facts,
                    self.reader,
                    SessionReader(self.turns, self.users, topic_prefix="test", waiting=self.reader.waiting),
                    history,
                    TopicReader(self.topics, Policy().topics, self.reader.waiting),
                    changes,
                ),
                *served_routes(project_reader, commands, ProjectItems(project_reader)),
                *admin_routes(self.apps, apps or Policy().apps, self.apps, self.erasures, self.turns),
                *([] if log is None else _live_page().routes(*[MagicMock()] * 5)),
                *([] if log is None else served_routes(SearchRoutes(self.apps, spaces))),
            ],
            endpoints=[self.tools] if log is None else [log, self.tools],
            http=settings,
        )

    async def say(self, *turns: Turn, places: Sequence[Position | None] | None = None) -> None:
        """Index turns."""
        self.sessions |= {SessionName(turn.app_id, turn.session_id): self.turns for turn in turns}
        await self.turns.add_turns(turns, self.embedder.embed([turn.content for turn in turns]), places=places)

    @asynccontextmanager
    async def client(self, headers: Mapping[str, str] | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """A client that calls the app directly, with an endpoint's own work running."""
        async with client_of(self.app, headers) as client:
            yield client

    async def close(self) -> None:
        """Release the store."""
        await self.store.close()


def _live_page() -> LivePage:
    """One that has ended: no stream lasts."""
    page = LivePage(load_settings())
    page.end()
    return page


def _is_of(
    record: FactChanged | EpisodeCompressed | UserMemoryChanged, app_id: str | tuple[str, ...] | None, user_id: str
) -> bool:
    apps = (app_id,) if isinstance(app_id, str) else app_id
    return record.user_id == user_id and (apps is None or record.app_id in apps)


async def called(app: ASGIApp, *, receive: Receive | None = None, **scope: Any) -> list[Any]:
    """What an app sends to whoever calls it without a client; by default nothing may be read of the request."""
    sent: list[Any] = []

    async def never() -> Any:
        raise AssertionError("nothing is read of it")

    async def send(message: Any) -> None:
        sent.append(message)

    base = {"type": "http", "method": "GET", "query_string": b"", "headers": [], "client": ("127.0.0.1", 1)}
    await app({**base, **scope}, receive or never, send)
    return sent


def counted(name: str, **labels: str) -> float:
    """A counter of this process so far."""
    value: float = metrics.counter(name, **labels)._value.get()
    return value


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        """Seconds."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.slept.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)
