"""Reads what the index holds: from the index role, else from the Qdrant server that the settings name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import chain
from typing import NamedTuple, TypeVar, get_args
from urllib.parse import quote

import httpx
import msgspec

from models.errors import StoreUnavailable
from models.events import (
    ConversationChunk,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectItem,
    ProjectMemory,
)
from models.events.project_items import ItemKind
from streams.http.route import path_part
from streams.oracle.followers import Indexed, IndexedUser, ProjectId
from streams.oracle.tiers import UserId
from streams.settings import Settings
from streams.wiring import embedder_of, policy_of

_AT_ONCE = 8
_AT_MOST = 1_000
"""What the role's API gives of one session or user."""
_ANSWER_WITHIN_S = 15.0
_Answer = TypeVar("_Answer")
_Asked = TypeVar("_Asked")


class _NotServed(StoreUnavailable):
    """There is no such route: the role is of another release."""


class _Key(msgspec.Struct):
    session_id: str
    turn: int


class _Size(msgspec.Struct):
    topic_prefix: str
    turns: int


class _Fact(msgspec.Struct):
    category: str
    key: str
    value: str


class _Episode(msgspec.Struct):
    turn_start: int
    turn_end: int


class _UserStats(msgspec.Struct):
    turn_count: int = 0


class _Project(msgspec.Struct):
    known: bool = False


class _ProjectPage(msgspec.Struct):
    next: str
    memories: list[ProjectMemory] = []
    episodes: list[ProjectEpisode] = []
    chunks: list[ConversationChunk] = []
    conversations: list[ProjectConversation] = []
    pending: list[PendingFact] = []

    def all(self) -> Iterable[ProjectItem]:
        """Whatever kind they are."""
        return chain(self.memories, self.episodes, self.chunks, self.conversations, self.pending)


class _Reader(NamedTuple):
    points: Callable[[], Awaitable[int]]
    newest: Callable[[str, int], Awaitable[list[tuple[str, int]]]]
    user: Callable[[UserId], Awaitable[IndexedUser]]
    project: Callable[[ProjectId], Awaitable[list[ProjectItem]]]


async def read_index(
    settings: Settings, session_ids: Collection[str], *, index_url: str | None = None
) -> Indexed | str:
    """The newest turns of each session, from their payloads, and the number of all points.

    Args:
        settings: Which prefix, policy and vector store.
        session_ids: Whose turns.
        index_url: Where the index role answers; none: where the settings say, if it answers there.

    Returns:
        Why not, where nobody can be asked: Qdrant Edge belongs to the role's process.

    Raises:
        StoreUnavailable: The role at `index_url`, or the store, does not answer.
    """
    at_most = min(_AT_MOST, policy_of(settings).memory.stored_vectors)
    async with _reader(settings, index_url) as reader:
        if isinstance(reader, str):
            return reader
        found = await _each(session_ids, lambda session_id: reader.newest(session_id, at_most))
        return Indexed(turns=[key for keys in found for key in keys], at_most=at_most, points=await reader.points())


async def read_users(
    settings: Settings, users: Collection[UserId], *, index_url: str | None = None
) -> dict[UserId, IndexedUser] | str:
    """Active facts, episodes and number of turns of each user; arguments and errors as of `read_index`."""
    return await _of_each(settings, users, lambda reader: reader.user, index_url)


async def read_projects(
    settings: Settings, projects: Collection[ProjectId], *, index_url: str | None = None
) -> dict[ProjectId, list[ProjectItem]] | str:
    """Everything of each project; arguments and errors as of `read_index`."""
    return await _of_each(settings, projects, lambda reader: reader.project, index_url)


async def _of_each(
    settings: Settings,
    asked: Collection[_Asked],
    how: Callable[[_Reader], Callable[[_Asked], Awaitable[_Answer]]],
    index_url: str | None,
) -> dict[_Asked, _Answer] | str:
    async with _reader(settings, index_url) as reader:
        if isinstance(reader, str):
            return reader
        try:
            return dict(zip(asked, await _each(asked, how(reader)), strict=True))
        except _NotServed as nothing_there:
            return str(nothing_there)


async def _each(asked: Iterable[_Asked], read: Callable[[_Asked], Awaitable[_Answer]]) -> list[_Answer]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(each: _Asked) -> _Answer:
        async with gate:
            return await read(each)

    return await asyncio.gather(*map(one, asked))


@asynccontextmanager
async def _reader(settings: Settings, index_url: str | None) -> AsyncIterator[_Reader | str]:
    url = index_url or settings.http.index_url
    async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S, headers=_token(settings)) as client:
        try:
            size = await _ask(client, "/v1/index", _Size)
        except StoreUnavailable:
            if index_url is not None:
                raise
            size = None
        if size is not None and size.topic_prefix == settings.topic_prefix:
            yield _over_http(client)
            return
    if settings.vectors.url:
        async with _over_store(settings) as reader:
            yield reader
        return
    there = "answers for another topic prefix" if size else "does not answer"
    yield f"the index role {there} at {url}, and vectors.url names no server"


def _token(settings: Settings) -> dict[str, str]:
    """The header of a token that reads every app, if there is one."""
    for entry in settings.http.tokens:
        if not entry.apps:
            return {"Authorization": f"Bearer {entry.token.get_secret_value()}"}
    return {}


def _over_http(client: httpx.AsyncClient) -> _Reader:
    async def points() -> int:
        return (await _ask(client, "/v1/index", _Size)).turns

    async def newest(session_id: str, at_most: int) -> list[tuple[str, int]]:
        path = f"/v1/sessions/{path_part(session_id)}/turns?last={at_most}"
        return [(key.session_id, key.turn) for key in await _ask(client, path, list[_Key])]

    async def user(who: UserId) -> IndexedUser:
        path, app = f"/v1/users/{path_part(who.user_id)}", f"app_id={quote(who.app_id, safe='')}"
        facts = await _ask(client, f"{path}/facts?{app}", list[_Fact])
        episodes = await _ask(client, f"{path}/episodes?{app}&limit={_AT_MOST}", list[_Episode])
        stats = await _ask(client, f"{path}/standing?{app}", _UserStats)
        return IndexedUser(
            facts=[(fact.category, fact.key, fact.value) for fact in facts],
            episodes=[(episode.turn_start, episode.turn_end) for episode in episodes],
            turn_count=stats.turn_count,
        )

    async def project(which: ProjectId) -> list[ProjectItem]:
        path, app = f"/v1/projects/{path_part(which.project_id)}", f"app_id={quote(which.app_id, safe='')}"
        found: list[ProjectItem] = []
        if not (await _ask(client, f"{path}?{app}", _Project)).known:
            return found
        for kind in get_args(ItemKind):
            page = await _ask(client, f"{path}/export?{app}&kind={kind}", _ProjectPage)
            found += page.all()
            while page.next:
                page = await _ask(client, f"{path}/export?{app}&kind={kind}&after={page.next}", _ProjectPage)
                found += page.all()
        return found

    return _Reader(points, newest, user, project)


async def _ask(client: httpx.AsyncClient, path: str, kind: type[_Answer]) -> _Answer:
    try:
        answer = await client.get(path)
    except httpx.TransportError as error:
        raise StoreUnavailable(f"the index role does not answer at {client.base_url}: is it running?") from error
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise _NotServed(f"the index role at {client.base_url} does not serve {path.partition('?')[0]}")
    if answer.status_code != HTTPStatus.OK:
        raise StoreUnavailable(f"the index role at {client.base_url} answers {path} with {answer.status_code}")
    return msgspec.json.decode(answer.content, type=kind)


@asynccontextmanager
async def _over_store(settings: Settings) -> AsyncIterator[_Reader]:
    from streams.index.project_memory import ProjectMemories
    from streams.index.session_memory import SessionVectorMemory
    from streams.index.user_memory import UserMemory
    from streams.wiring import vector_store_of

    embedder = embedder_of(settings)
    store = vector_store_of(settings, embedder)
    memory, users = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    projects = ProjectMemories(store, embedder, policy_of(settings).projects)

    async def newest(session_id: str, at_most: int) -> list[tuple[str, int]]:
        return [(turn.session_id, turn.turn) for turn in await memory.last_turns(session_id, at_most)]

    async def user(who: UserId) -> IndexedUser:
        stats = await users.stats(*who)
        return IndexedUser(
            facts=[(fact.category, fact.key, fact.value) for fact in await users.facts(*who)],
            episodes=[(each.first_turn, each.last_turn) for each in await users.episodes(*who, limit=_AT_MOST)],
            turn_count=stats.turn_count if stats else 0,
        )

    async def project(which: ProjectId) -> list[ProjectItem]:
        if (view := await projects.view(*which)) is None:
            return []
        kinds = (view.memories, view.episodes, view.chunks, view.conversations, view.pending)
        return [item for items in kinds for item in items.values()]

    try:
        yield _Reader(memory.count, newest, user, project)
    finally:
        await store.close()
