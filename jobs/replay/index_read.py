"""Reads what the index holds over its HTTP API: of the index role, else over the Qdrant server that settings name."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import chain
from typing import Any, TypeVar, get_args

import httpx
import msgspec

from models.errors import ConfigurationError, StoreUnavailable
from models.events import ProjectItem, SessionName
from models.events.project_items import ItemKind
from streams.api.projects.items import ProjectItems
from streams.api.projects.messages import OfProject
from streams.api.projects.reading import ProjectReader
from streams.api.sessions.turns import IndexAnswer, SessionReader
from streams.api.users.messages import OfUser, UserFacts
from streams.api.users.reading import MemoryReader
from streams.erase.concerned import Project, User
from streams.http.route import route_of
from streams.oracle.followers import Indexed, IndexedUser
from streams.settings import Settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of

_AT_ONCE = 8
_AT_MOST = 1_000
"""What the API gives of one session or user."""
_ANSWER_WITHIN_S = 15.0
_Answer = TypeVar("_Answer")
_Asked = TypeVar("_Asked")


class NobodyToAsk(ConfigurationError):  # noqa: N818 - says what is the case
    """The index cannot be read here: Qdrant Edge belongs to the role's process, or the role is of another release."""


async def read_index(settings: Settings, sessions: Collection[SessionName], *, index_url: str | None = None) -> Indexed:
    """The newest turns of each session, from their payloads, and the number of all points.

    Args:
        settings: Which prefix, policy and vector store.
        sessions: Whose turns.
        index_url: Where the index role answers; none: where the settings say, if it answers there.

    Raises:
        NobodyToAsk: The index cannot be read.
        StoreUnavailable: The role at `index_url`, or the store, does not answer.
    """
    at_most = min(_AT_MOST, policy_of(settings).memory.stored_vectors)
    async with _reader(settings, index_url) as index:
        found = await _each(sessions, lambda session: index.newest(session, at_most))
        points = (await index.size()).turns
        return Indexed(turns=[key for keys in found for key in keys], at_most=at_most, points=points)


async def read_users(
    settings: Settings, users: Collection[User], *, index_url: str | None = None
) -> dict[User, IndexedUser]:
    """Active facts, episodes and number of turns of each user; arguments and errors as of `read_index`."""
    async with _reader(settings, index_url) as index:
        return dict(zip(users, await _each(users, index.user), strict=True))


async def read_projects(
    settings: Settings, projects: Collection[Project], *, index_url: str | None = None
) -> dict[Project, list[ProjectItem]]:
    """Everything of each project; arguments and errors as of `read_index`."""
    async with _reader(settings, index_url) as index:
        return dict(zip(projects, await _each(projects, index.project), strict=True))


async def _each(asked: Iterable[_Asked], read: Callable[[_Asked], Awaitable[_Answer]]) -> list[_Answer]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(each: _Asked) -> _Answer:
        async with gate:
            return await read(each)

    return await asyncio.gather(*map(one, asked))


class _IndexReader:
    """The API's answers."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def size(self) -> IndexAnswer:
        found: IndexAnswer = await self._ask(SessionReader.index)
        return found

    async def newest(self, session: SessionName, at_most: int) -> list[tuple[str, str, int]]:
        found = await self._ask(SessionReader.turns, {**session._asdict(), "last": at_most})
        return [(session.app_id, each.session_id, each.turn) for each in found]

    async def user(self, who: User) -> IndexedUser:
        whose = who._asdict()
        facts = await self._ask(MemoryReader.facts, UserFacts(**whose))
        episodes = await self._ask(MemoryReader.episodes, {**whose, "limit": _AT_MOST})
        return IndexedUser(
            facts=[(fact.category, fact.key, fact.value) for fact in facts],
            episodes=[(episode.turn_start, episode.turn_end) for episode in episodes],
            turn_count=(await self._ask(MemoryReader.stats, OfUser(**whose))).turn_count,
        )

    async def project(self, which: Project) -> list[ProjectItem]:
        whose, found = which._asdict(), list[ProjectItem]()
        if not (await self._ask(ProjectItems.stats, OfProject(**whose))).known:
            return found
        for kind in get_args(ItemKind):
            after, more = "", True
            while more:
                page = await self._ask(ProjectReader.export, {**whose, "kind": kind, "after": after})
                found += chain(page.memories, page.episodes, page.chunks, page.conversations, page.pending)
                after, more = page.next, bool(page.next)
        return found

    async def _ask(self, method: Callable[..., Any], asked: msgspec.Struct | Mapping[str, Any] | None = None) -> Any:
        """Answer of the route that a method declares."""
        there, route = self._client.base_url, route_of(method)
        path, params = route.target(asked)
        try:
            answer = await self._client.get(path, params=params)
        except httpx.TransportError as error:
            raise StoreUnavailable(f"the index role does not answer at {there}: is it running?") from error
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise NobodyToAsk(f"the index role at {there} does not serve {path}")
        if answer.status_code != HTTPStatus.OK:
            raise StoreUnavailable(f"the index role at {there} answers {path} with status {answer.status_code}")
        return msgspec.json.decode(answer.content, type=route.answers[HTTPStatus.OK])


@asynccontextmanager
async def _reader(settings: Settings, index_url: str | None) -> AsyncIterator[_IndexReader]:
    url = index_url or settings.http.index_url
    async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S, headers=_token(settings)) as client:
        index, size = _IndexReader(client), None
        try:
            size = await index.size()
        except (StoreUnavailable, NobodyToAsk):
            if index_url is not None:
                raise
        if size is not None and size.topic_prefix == settings.topic_prefix:
            yield index
            return
    if not settings.vectors.url:
        there = "answers for another topic prefix" if size else "does not answer"
        raise NobodyToAsk(f"the index role {there} at {url}, and vectors.url is not set")
    async with _over_store(settings) as client:
        yield _IndexReader(client)


def _token(settings: Settings) -> dict[str, str]:
    """The header of a token that reads every app, if there is one."""
    for entry in settings.http.tokens:
        if not entry.apps:
            return {"Authorization": f"Bearer {entry.token.get_secret_value()}"}
    return {}


@asynccontextmanager
async def _over_store(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The same API in this process, over the vector store."""
    from streams.api.assembly import memory_api
    from streams.http.health import create_api
    from streams.observe.telemetry import metrics
    from streams.wiring import vector_store_of

    embedder = embedder_of(settings)
    store = vector_store_of(settings, embedder)
    http = HttpSettings(mcp=False)
    routes = memory_api(store, embedder, policy_of(settings), http, topic_prefix=settings.topic_prefix).routes
    app = create_api(ready=lambda: (True, ""), registry=metrics.registry, routes=routes)
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://index") as client:
            yield client
    finally:
        await store.close()
