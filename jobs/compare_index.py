"""Reads the turns that the index holds: from the index role, else from the Qdrant server that the settings name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from models.errors import StoreUnavailable
from streams.comparison import Indexed
from streams.settings import Settings
from streams.wiring import embedder_of, policy_of

_AT_ONCE = 8
_AT_MOST = 1_000
"""What the role's API gives of one session."""
_ANSWER_WITHIN_S = 15.0
_Answer = TypeVar("_Answer")


class _Key(msgspec.Struct):
    session_id: str
    turn: int


class _Size(msgspec.Struct):
    topic_prefix: str
    turns: int


class _Reader(NamedTuple):
    points: Callable[[], Awaitable[int]]
    newest: Callable[[str, int], Awaitable[list[tuple[str, int]]]]


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
        gate = asyncio.Semaphore(_AT_ONCE)

        async def newest(session_id: str) -> list[tuple[str, int]]:
            async with gate:
                return await reader.newest(session_id, at_most)

        found = await asyncio.gather(*map(newest, session_ids))
        return Indexed(turns=[key for keys in found for key in keys], at_most=at_most, points=await reader.points())


@asynccontextmanager
async def _reader(settings: Settings, index_url: str | None) -> AsyncIterator[_Reader | str]:
    url = index_url or f"http://{settings.http.host}:{settings.http.index_port}"
    async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S) as client:
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


def _over_http(client: httpx.AsyncClient) -> _Reader:
    async def points() -> int:
        return (await _ask(client, "/v1/index", _Size)).turns

    async def newest(session_id: str, at_most: int) -> list[tuple[str, int]]:
        # A session may be called `.` or `..`, which clients would take for a step in the path.
        name = quote(session_id, safe="").replace(".", "%2E")
        path = f"/v1/sessions/{name}/turns?last={at_most}"
        return [(key.session_id, key.turn) for key in await _ask(client, path, list[_Key])]

    return _Reader(points, newest)


async def _ask(client: httpx.AsyncClient, path: str, kind: type[_Answer]) -> _Answer:
    try:
        answer = await client.get(path)
    except httpx.TransportError as error:
        raise StoreUnavailable(f"the index role does not answer at {client.base_url}: is it running?") from error
    if answer.status_code != HTTPStatus.OK:
        raise StoreUnavailable(f"the index role at {client.base_url} answers {path} with {answer.status_code}")
    return msgspec.json.decode(answer.content, type=kind)


@asynccontextmanager
async def _over_store(settings: Settings) -> AsyncIterator[_Reader]:
    from streams.vectors.session_memory import SessionVectorMemory
    from streams.wiring import vector_store_of

    embedder = embedder_of(settings)
    store = vector_store_of(settings, embedder)
    memory = SessionVectorMemory(store, embedder)

    async def newest(session_id: str, at_most: int) -> list[tuple[str, int]]:
        return [(turn.session_id, turn.turn) for turn in await memory.last_turns(session_id, at_most)]

    try:
        yield _Reader(memory.count, newest)
    finally:
        await store.close()
