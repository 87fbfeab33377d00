"""Role api: memory over HTTP, as many processes as are wanted, over a Qdrant server. Nothing is kept here.

Where the vector store is Qdrant Edge, one process owns it, and the index role serves the same.
"""

from __future__ import annotations

import asyncio

import structlog

from models.errors import StoreUnavailable
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.live.service import LivePage
from streams.api.users.ports import CommandSender, EraseRequests
from streams.http.health import Endpoint, create_api, serve
from streams.http.security import access_of
from streams.index.collections import TURNS
from streams.observe.telemetry import metrics
from streams.ports import Embedder, VectorStore
from streams.settings import Settings

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 2.0


class ApiRole:
    """Serves until it is stopped.

    Args:
        settings: Where to listen, and who may read.
        policy: The rules.
        embedder: Embeds queries.
        store: What is read; closed at the end.
        commands: Where what admins do goes; None: such requests are refused.
        erasures: Where erasures go; None: likewise.
        audit: Takes records of what is read and done; None: nothing is noted.
        live: The live page; None: it is not served.
    """

    name = "api"

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        embedder: Embedder,
        store: VectorStore,
        *,
        commands: CommandSender | None = None,
        erasures: EraseRequests | None = None,
        audit: Endpoint | None = None,
        live: LivePage | None = None,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._embedder = embedder
        self._store = store
        self._commands = commands
        self._erasures = erasures
        self._audit = audit
        self._live = live
        self._reason = "asking the vector store"

    def ready(self) -> tuple[bool, str]:
        """Whether the store answered when it was asked last."""
        return not self._reason, self._reason or "ready"

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        http = self._settings.http
        served = memory_api(
            self._store,
            self._embedder,
            self._policy,
            http,
            topic_prefix=self._settings.topic_prefix,
            commands=self._commands,
            erasures=self._erasures,
            audit=self._audit,
            live=self._live,
        )
        api = create_api(
            ready=self.ready,
            registry=metrics.registry,
            routes=served.routes,
            access=access_of(http),
            endpoints=served.endpoints,
            limits=http,
        )
        looking = asyncio.create_task(self._look())
        try:
            async with serve(api, http.host, http.api_port) as port:
                log.info("http_listening", role=self.name, host=http.host, port=port)
                await stop.wait()
        finally:
            looking.cancel()
            await self._store.close()

    async def _look(self) -> None:
        while True:
            try:
                await self._store.latest(TURNS.name, where={"session_id": ""}, by="turn", limit=1)
                self._reason = ""
            except StoreUnavailable as error:
                self._reason = str(error)
            metrics.gauge("ready").set(self.ready()[0])
            await asyncio.sleep(LOOK_EVERY_S)
