"""The index role's app with an audit that keeps its records, over a store without network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import MagicMock

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from models.errors import DeliveryFailed
from models.events import AccessAudited
from models.policy import Policy
from streams.api.assembly import admin_routers
from streams.api.live.page import page_router
from streams.api.live.routes import live_router
from streams.api.mcp.server import McpEndpoint
from streams.api.sessions.topics import topics_router
from streams.api.sessions.turns import index_router, similar_router
from streams.api.users.routes import memory_router
from streams.http.health import create_api
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


def audited_app(settings: HttpSettings, log: Log) -> tuple[FastAPI, Served]:
    """Everything that the index role serves, and what stands behind it; the live page stands on nothing."""
    served = Served()
    app = create_api(
        ready=lambda: (True, "ready"),
        registry=CollectorRegistry(),
        routers=[
            memory_router(served.reader),
            similar_router(served.turns),
            index_router(served.turns, topic_prefix="test"),
            topics_router(served.topics, Policy().topics),
            served.projects_router,
            *admin_routers(served.apps, Policy().apps, served.apps, served.erasures),
            live_router(MagicMock()),
            page_router(),
        ],
        access=access_of(settings),
        endpoints=[log, McpEndpoint(served.reader, served.project_tools)],
        limits=settings,
    )
    return app, served
