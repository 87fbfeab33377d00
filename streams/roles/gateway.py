"""Role gateway: turns over HTTP to `turns.v1`, as many processes as are wanted. Nothing is kept here."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from models.errors import DeliveryFailed
from models.policy import Policy
from streams.gateway.gateway import Gateway
from streams.gateway.otlp import OtlpRoutes
from streams.gateway.routes import GatewayRoutes
from streams.gateway.visible import IndexedNumbers
from streams.http.answering import ServedRoute, served_routes
from streams.http.audit import BatchedAudit
from streams.http.health import AskedReadiness, serve_until
from streams.settings import Settings


@asynccontextmanager
async def taking_turns(settings: Settings, gateway: Gateway, role: str) -> AsyncIterator[Sequence[ServedRoute]]:
    """Everything that takes turns over HTTP, seen by readers of a role; bodies may be larger than of other routes."""
    numbers = IndexedNumbers(settings.gateway.memory_url or settings.http.url_of(role))
    most_bytes = settings.gateway.max_body_bytes
    readers = GatewayRoutes(gateway, numbers), OtlpRoutes(gateway, max_bytes=most_bytes)
    try:
        yield served_routes(*readers, max_body_bytes=most_bytes)
    finally:
        await numbers.close()


async def take_turns(settings: Settings, policy: Policy, audit: BatchedAudit, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, ready while the cluster answers; what is under way then is written.

    Args:
        settings: Where it listens, and the cluster.
        policy: What a turn must keep to.
        audit: Takes records of what is done.
        stop: Ends it.
    """
    http, gateway = settings.http, Gateway(settings, policy)
    readiness = AskedReadiness(gateway.look, DeliveryFailed, "connecting to Kafka")
    try:
        async with taking_turns(settings, gateway, "index") as routes:
            served = {"routes": routes, "endpoints": (audit,)}
            await serve_until(stop, "gateway", http.gateway_port, http, readiness, **served)
    finally:
        await gateway.close()
