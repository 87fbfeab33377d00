"""Role api: memory over HTTP, as many processes as are wanted, over a Qdrant server. Nothing is kept here.

Where the vector store is Qdrant Edge, one process owns it, and the index role serves the same.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Unpack

from models.errors import StoreUnavailable
from models.policy import Policy
from streams.api.assembly import Beside, memory_api
from streams.http.health import AskedReadiness, serve_until
from streams.index.collections import TURNS
from streams.ports import Embedder, VectorStore
from streams.settings import Settings


async def serve_memory(
    settings: Settings,
    policy: Policy,
    embedder: Embedder,
    store: VectorStore,
    stop: asyncio.Event,
    **beside: Unpack[Beside],
) -> None:
    """Serve until `stop` is set, and close the store then; ready while the store answers."""
    http, look = settings.http, partial(store.latest, TURNS.name, where={"session_id": ""}, by="turn", limit=1)
    made = memory_api(store, embedder, policy, http, topic_prefix=settings.topic_prefix, **beside)
    readiness = AskedReadiness(look, StoreUnavailable, "asking the vector store")
    try:
        await serve_until(stop, "api", http.api_port, http, readiness, routes=made.routes, endpoints=made.endpoints)
    finally:
        await store.close()
