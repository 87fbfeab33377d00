"""Role api: memory over HTTP, as many processes as are wanted, over a Qdrant server. Nothing is kept here.

Where the vector store is Qdrant Edge, one process owns it, and the index role serves the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypedDict, Unpack

from models.errors import StoreUnavailable
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.commands import CommandSender, EventWriter
from streams.api.live.service import LivePage
from streams.archive.history import ArchivedTurns
from streams.erase.record import KafkaEraseRequests
from streams.gateway.gateway import Gateway
from streams.http.answering import ServedRoute
from streams.http.audit_log import BatchedAudit
from streams.http.health import AskedReadiness, serve_until
from streams.index.collections import TURNS
from streams.ports import Embedder, VectorStore
from streams.settings import Settings


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


class ApiRole:
    """Serves until it is stopped, and closes the store then."""

    name = "api"

    def __init__(
        self, settings: Settings, policy: Policy, embedder: Embedder, store: VectorStore, **beside: Unpack[Beside]
    ) -> None:
        self._settings = settings
        self._store = store
        prefix = settings.topic_prefix
        self._served = memory_api(store, embedder, policy, settings.http, topic_prefix=prefix, **beside)
        self._readiness = AskedReadiness(self._look, StoreUnavailable, "asking the vector store")

    def ready(self) -> tuple[bool, str]:
        """Whether the store answered when it was asked last."""
        return self._readiness.ready()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        http, served = self._settings.http, {"routes": self._served.routes, "endpoints": self._served.endpoints}
        try:
            await serve_until(stop, self.name, http.api_port, http, self._readiness, **served)
        finally:
            await self._store.close()

    async def _look(self) -> None:
        await self._store.latest(TURNS.name, where={"session_id": ""}, by="turn", limit=1)
