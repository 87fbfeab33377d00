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


def turn_routes(gateway: Gateway, numbers: IndexedNumbers, settings: Settings) -> list[ServedRoute]:
    """Everything that takes turns over HTTP: bodies may be larger than of other routes."""
    most_bytes = settings.gateway.max_body_bytes
    readers = GatewayRoutes(gateway, numbers), OtlpRoutes(gateway, max_bytes=most_bytes)
    return served_routes(*readers, max_body_bytes=most_bytes)


@asynccontextmanager
async def taking_turns(settings: Settings, gateway: Gateway, role: str) -> AsyncIterator[Sequence[ServedRoute]]:
    """Routes that take turns, for a role that serves memory too."""
    numbers = IndexedNumbers(settings.gateway.memory_url or settings.http.url_of(role))
    try:
        yield turn_routes(gateway, numbers, settings)
    finally:
        await numbers.close()


class GatewayRole:
    """Serves until it is stopped.

    Args:
        settings: Where it listens, and the cluster.
        policy: What a turn must keep to.
        audit: Takes records of what is done; None: nothing is noted.
    """

    name = "gateway"

    def __init__(self, settings: Settings, policy: Policy, audit: BatchedAudit | None = None) -> None:
        self._settings = settings
        self._audit = () if audit is None else (audit,)
        self._gateway = Gateway(settings, policy)
        self._numbers = IndexedNumbers(settings.gateway.memory_url or settings.http.url_of("index"))
        self._readiness = AskedReadiness(self._gateway.look, DeliveryFailed, "connecting to Kafka")

    def ready(self) -> tuple[bool, str]:
        """Whether the cluster answered when it was asked last."""
        return self._readiness.ready()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; what is under way then is written."""
        http, routes = self._settings.http, turn_routes(self._gateway, self._numbers, self._settings)
        served = {"routes": routes, "endpoints": self._audit}
        try:
            await serve_until(stop, self.name, http.gateway_port, http, self._readiness, **served)
        finally:
            await self._numbers.close()
            await self._gateway.close()
