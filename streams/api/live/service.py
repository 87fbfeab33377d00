"""The live page as a role serves it: its files at `/live/`, its parts, its routes, and what runs meanwhile.

The files hold no data, so everybody may have them; nothing from elsewhere runs in them. Names are looked up among the
files that were there at the start: no path of a request ever reaches the file system.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from streams.api.live.board import LiveBoard
from streams.api.live.feed import LiveFeed
from streams.api.live.hub import Hub
from streams.api.live.roles import KafkaLags, RoleWatch, role_addresses
from streams.api.live.routes import AlertCommands, EventWriter, LiveData
from streams.api.live.searching import LiveSearch
from streams.api.live.timeline import TimelineReader
from streams.http.answering import ServedRoute, served_routes
from streams.http.problems import Problem
from streams.index.hybrid_search import HybridSearch
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.ports import VectorStore
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
            raise Problem(HTTPStatus.NOT_FOUND, "not_found", f"the page has no such file: open {LIVE_PAGE}")
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

    Attributes:
        board: What is known.
        hub: Who is told.
    """

    def __init__(self, settings: Settings, writer: EventWriter | None = None) -> None:
        self.board = LiveBoard(max_sessions=settings.live.max_sessions)
        self.hub = Hub(self.board, settings.live)
        self._writer = writer
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
    ) -> list[ServedRoute]:
        """Routes of data and of the page's files.

        Args:
            store: The scoped one, over which the others are made.
            turns: What was said.
            topics: What it was about.
            users: Facts and episodes.
            search: Hybrid search.
        """
        served = served_routes(
            LiveData(self.hub, tokens=self._tokens),
            LiveSearch(self.board, store, search),
            TimelineReader(self.board, turns, topics, users),
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
