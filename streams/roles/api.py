"""Role api: memory over HTTP, as many processes as are wanted, over a Qdrant server. Nothing is kept here.

Where the vector store is Qdrant Edge, one process owns it, and the index role serves the same.
"""

from __future__ import annotations

import asyncio
from typing import Unpack

from models.errors import StoreUnavailable
from models.policy import Policy
from streams.api.assembly import Beside, memory_api
from streams.http.health import AskedReadiness, serve_until
from streams.index.collections import TURNS
from streams.ports import Embedder, VectorStore
from streams.settings import Settings


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
