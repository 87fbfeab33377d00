"""The live page as a role serves it: its files at `/live/`, its parts, its routes, search, and what runs meanwhile.

The files hold no data, so everybody may have them; nothing from elsewhere runs in them. Names are looked up among the
files that were there at the start: no path of a request ever reaches the file system.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, NamedTuple

import structlog
from msgspec import Meta, structs
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from models.policy import NotifyPolicy
from models.text.words import fold_text, words_of
from streams.api.answers import answered
from streams.api.commands import EventWriter
from streams.api.live.board import LiveBoard
from streams.api.live.feed import LiveFeed
from streams.api.live.hub import Hub
from streams.api.live.messages import Hit, Hits, SearchKind
from streams.api.live.roles import KafkaLags, RoleWatch, role_addresses
from streams.api.live.routes import LIVE, AlertCommands, LiveData, OfApp
from streams.api.live.timeline import TimelineReader
from streams.api.users.messages import MAX_QUERY_CHARS
from streams.http.answering import ServedRoute, served_routes
from streams.http.problems import not_found
from streams.http.security import caller
from streams.index.collections import FACTS, MEMORIES
from streams.index.hybrid_search import HybridSearch, Scope
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.masking.credentials import without_secrets
from streams.ports import Condition, VectorStore
from streams.settings import Settings
from streams.settings.live import LIVE_PAGE, LIVE_PATH

STATIC = Path(__file__).with_name("static")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""By the ending of a name; files that end otherwise are not served."""


class StaticFile(NamedTuple):
    """One file of the page, as it is answered."""

    content: bytes
    media_type: str
    etag: str


def page_routes(folder: Path = STATIC) -> list[ServedRoute]:
    """Routes of the page's files; not part of the contract, which is about data."""
    files = {}
    for path in folder.rglob("*"):
        if (media_type := _MEDIA_TYPES.get(path.suffix)) is not None:
            content = path.read_bytes()
            etag = f'"{sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = StaticFile(content, media_type, etag)

    async def moved(_request: Request) -> Response:
        return RedirectResponse(LIVE_PAGE, HTTPStatus.PERMANENT_REDIRECT, headers=dict(HEADERS))

    async def file(request: Request) -> Response:
        found = files.get(request.path_params["name"] or _INDEX)
        if found is None:
            raise not_found(f"the live page has no such file: open {LIVE_PAGE}")
        headers = {**HEADERS, "ETag": found.etag}
        if found.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(found.content, headers=headers, media_type=found.media_type)

    methods = ["GET", "HEAD"]
    return [
        ServedRoute(LIVE_PATH, moved, methods, reach="open"),
        ServedRoute(LIVE_PAGE + "{name:path}", file, methods, reach="open"),
    ]


log = structlog.get_logger(__name__)


class LivePage:
    """An `Endpoint` of the role's app: while it runs, the board follows the log.

    Args:
        settings: Which cluster, how much, and for whom.
        writer: Where acknowledgements and labels go; None: such requests are refused.
        policy: Its next steps for alerts; None: the default's.

    Attributes:
        board: What is known.
        hub: Who is told.
    """

    def __init__(
        self, settings: Settings, writer: EventWriter | None = None, policy: NotifyPolicy | None = None
    ) -> None:
        self.board = LiveBoard(max_sessions=settings.live.max_sessions)
        self.hub = Hub(self.board, settings.live)
        self._writer = writer
        self._policy = policy or NotifyPolicy()
        self._tokens = bool(settings.http.tokens)
        self._feed = LiveFeed(settings, self.board)
        addresses = role_addresses(settings)
        self._roles = RoleWatch(addresses, self.hub, KafkaLags(settings, addresses))

    def routes(
        self,
        store: VectorStore,
        turns: SessionVectorMemory,
        topics: TopicMemory,
        users: UserMemory,
        search: HybridSearch,
        *,
        quoted: Callable[[str], str] = without_secrets,
    ) -> list[ServedRoute]:
        """Routes of data and of the page's files.

        Args:
            store: The scoped one, over which the others are made.
            turns: What was said.
            topics: What it was about.
            users: Facts and episodes.
            search: Hybrid search.
            quoted: Masks what alerts quote.
        """
        served = served_routes(
            LiveData(self.hub, tokens=self._tokens),
            LiveSearch(self.board, store, search),
            TimelineReader(self.board, turns, topics, users, self._policy, quoted=quoted),
            AlertCommands(self.board, self._writer),
        )
        return [*served, *page_routes()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the log, tick, and look after the roles while the context is open."""
        self.hub.begin()
        parts = {"feed": self._feed.run(), "hub": self.hub.run(), "roles": self._roles.run()}
        tasks = [asyncio.create_task(part, name=name) for name, part in parts.items()]
        for task in tasks:
            task.add_done_callback(self._ended)
        try:
            yield
        finally:
            self.hub.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A page that stands still must say so."""
        if not self.hub.ended:
            error = None if task.cancelled() else task.exception()
            log.error("live_page_stopped", part=task.get_name(), error=type(error).__name__)

    def end(self) -> None:
        """End all streams: the server waits for answers that are under way."""
        self.hub.end()


MOST_FACTS = 2_000
"""Facts have no index of words: so many of the latest are looked through."""


class LiveSearch:
    """Searches for the caller of a request: the store gives only the caller's apps.

    Args:
        board: Knows the apps that have sessions now.
        store: The scoped one.
        search: Over the same store.
    """

    def __init__(self, board: LiveBoard, store: VectorStore, search: HybridSearch) -> None:
        self._board = board
        self._store = store
        self._search = search

    @LIVE.get("/search", "search_live", audits="text_read")
    async def find(
        self,
        asked: OfApp,
        *,
        q: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S", description="Search text.")],
        kind: Annotated[SearchKind, Meta(description="Kind of items to search.")] = "turns",
        limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of items.")] = 20,
        text: Annotated[bool, Meta(description="Whether to return the text too.")] = True,
    ) -> Hits:
        """Search turns, episodes, facts of users or memories of apps, best match first."""
        asked_by = caller()
        # Without an app those of the caller; who reads all, searches those with sessions on the board.
        apps = asked_by.apps_of(asked.app_id) or tuple(sorted(self._board.apps()))
        if not apps:
            return Hits(hits=[])
        searches = {"turns": self._turns, "episodes": self._episodes, "facts": self._facts, "memories": self._memories}
        hits = await searches[kind](q, apps, limit)
        may_read = [hit for hit in hits if asked_by.may_read(hit.app_id)]
        return Hits(hits=may_read if text else [structs.replace(hit, text=None) for hit in may_read])

    async def _turns(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        found = await self._search.turns(query, Scope(app_ids=apps), limit)
        return [answered(Hit, each.turn, kind="turns", score=each.score, text=each.turn.content) for each in found]

    async def _episodes(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        found = await self._search.episodes(query, Scope(app_ids=apps), limit)
        return [
            answered(
                Hit,
                each,
                kind="episodes",
                session_id=each.turns[-1].session_id if each.turns else None,
                turn=each.turns[-1].turns[-1] if each.turns else None,
                score=score,
                text=each.summary,
            )
            for each, score in found
        ]

    async def _facts(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        where = _of(apps) | {"active": 1}
        facts = await FACTS.latest(self._store, where, MOST_FACTS)
        wanted = set(words_of(fold_text(query)))
        hits = [
            answered(
                Hit,
                fact,
                kind="facts",
                session_id=fact.session_id or None,
                turn=fact.turn if fact.turn >= 0 else None,
                score=_share(wanted, f"{fact.key.replace('_', ' ')} {fact.value} {fact.user_id}"),
                text=f"{fact.key}: {fact.value}",
            )
            for fact in facts
        ]
        return sorted((hit for hit in hits if hit.score > 0), key=lambda hit: -hit.score)[:limit]

    async def _memories(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        where = _of(apps) | {"owned": 1}
        found = await self._search.events(MEMORIES, query, where, limit)
        return [
            answered(
                Hit,
                each,
                kind="memories",
                session_id=each.session_id or None,
                turn=None,
                score=score,
                text=each.content,
            )
            for each, score in found
        ]


def _of(apps: Sequence[str]) -> dict[str, Condition]:
    return {"app_id": apps[0] if len(apps) == 1 else tuple(apps)}


def _share(wanted: set[str], text: str) -> float:
    """How many of the words a text has, 0-1."""
    return len(wanted.intersection(words_of(fold_text(text)))) / len(wanted) if wanted else 0.0
