"""The live page as a role serves it: its parts, its routes, and what runs meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from streams.api.live.alert_commands import AlertCommands, EventWriter
from streams.api.live.board import LiveBoard
from streams.api.live.feed import LiveFeed
from streams.api.live.hub import Hub
from streams.api.live.page import page_routes
from streams.api.live.roles import KafkaLags, RoleWatch, role_addresses
from streams.api.live.routes import LiveData
from streams.api.live.searching import LiveSearch
from streams.api.live.timeline import TimelineReader
from streams.http.answering import ServedRoute, served_routes
from streams.index.hybrid_search import HybridSearch
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.ports import VectorStore
from streams.settings import Settings

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
