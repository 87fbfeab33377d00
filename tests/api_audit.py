"""The index role's app with an audit that keeps its records, over a store without network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import MagicMock

from prometheus_client import CollectorRegistry

from models.errors import DeliveryFailed
from models.events import AccessAudited
from models.policy import Policy
from streams.api.assembly import admin_routes
from streams.api.live.page import page_routes
from streams.api.live.routes import LiveData
from streams.api.mcp.server import McpEndpoint
from streams.api.sessions.topics import TopicReader
from streams.api.sessions.turns import SessionReader
from streams.http.answering import served_routes
from streams.http.health import Api, create_api
from streams.http.security import access_of
from streams.settings.http import HttpSettings
from tests.api_doubles import Served


class Log:
    """An `AuditLog` in a list.

    Attributes:
        away: Whether nothing can be written.
    """

    def __init__(self, *, required: bool = False) -> None:
        self.required = required
        self.away = False
        self.events: list[AccessAudited] = []

    def record(self, event: AccessAudited) -> None:
        """As the port says."""
        self.events.append(event)

    async def write(self, event: AccessAudited) -> None:
        """As the port says."""
        if self.away:
            raise DeliveryFailed("away")
        self.record(event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Nothing is kept open."""
        yield


def audited_app(settings: HttpSettings, log: Log) -> tuple[Api, Served]:
    """Everything that the index role serves, and what stands behind it; the live page stands on nothing."""
    served = Served()
    app = create_api(
        ready=lambda: (True, "ready"),
        registry=CollectorRegistry(),
        routes=[
            *served_routes(
                served.reader,
                SessionReader(served.turns, topic_prefix="test"),
                TopicReader(served.topics, Policy().topics),
            ),
            *served.project_routes,
            *admin_routes(served.apps, Policy().apps, served.apps, served.erasures),
            *served_routes(LiveData(MagicMock())),
            *page_routes(),
        ],
        access=access_of(settings),
        endpoints=[log, McpEndpoint(served.asked)],
        limits=settings,
    )
    return app, served
