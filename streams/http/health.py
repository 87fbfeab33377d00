"""The HTTP server of every role: liveness, readiness, metrics and its routes. It listens on loopback by default.

uvicorn has no time-out for the head of a request: a client that sends its headers a byte at a time would keep a
connection for ever (slowloris). After the head the time-out of the request applies (`limits`): a body that does
not end gets 504, and if no next head follows in time its connection is closed here.

Every request passes `guard.RequestGuard` (identity and rate), `limits.Limits` (sizes and durations) and
`audit.Auditing` (audit log), then the routes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

import msgspec
import structlog
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from models.errors import ConfigurationError
from streams.http import openapi, pages, problems
from streams.http.answering import Matching, RequestMeasures, ServedRoute, answer, served_routes
from streams.http.audit import Auditing, BatchedAudit
from streams.http.guard import Rates, RequestGuard
from streams.http.limits import Limits, abandon
from streams.http.route import Group
from streams.http.security import access_of, is_loopback
from streams.observe.telemetry import metrics
from streams.settings.http import HttpSettings

log = structlog.get_logger(__name__)

ASK_EVERY_S = 2.0
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class AskedReadiness:
    """Readiness of a role that depends on one other service, which is checked every two seconds.

    Args:
        look: Checks the service.
        failure: Error that `look` raises if the service does not answer.
        at_first: Reason given until the first check.
    """

    def __init__(self, look: Callable[[], Awaitable[object]], failure: type[Exception], at_first: str) -> None:
        self._look = look
        self._failure = failure
        self._reason = at_first

    def ready(self) -> tuple[bool, str]:
        """Whether the last check succeeded; if not, the reason."""
        return not self._reason, self._reason or "ready"

    async def keep_asking(self) -> None:
        """Check until cancelled."""
        while True:
            try:
                await self._look()
                self._reason = ""
            except self._failure as error:
                self._reason = str(error)
            metrics.gauge("ready").set(self.ready()[0])
            await asyncio.sleep(ASK_EVERY_S)


def bounded_protocol(head_timeout: timedelta, max_connections: int) -> type[asyncio.Protocol]:
    """The protocol class with both limits, for uvicorn's `http` option.

    Args:
        head_timeout: From the first wait for a request to the end of its headers.
        max_connections: Connections of one server; a further one gets 503 and is closed.
    """
    limits = {"head_timeout_s": head_timeout.total_seconds(), "max_connections": max_connections}
    return type("BoundedProtocol", (_BoundedProtocol,), limits)


class _BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    head_timeout_s: float
    max_connections: int
    _waiting_for_head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            _end(transport, _BUSY, "connections")
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answering():
            self._forget_head()
        elif self._waiting_for_head is None and not self.transport.is_closing():
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        if self._answering():
            abandon(self.cycle.scope)
        super().connection_lost(exc)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._waiting_for_head = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _forget_head(self) -> None:
        if self._waiting_for_head is not None:
            self._waiting_for_head.cancel()
            self._waiting_for_head = None

    def _give_up(self) -> None:
        self._waiting_for_head = None
        if not self._answering() and not self.transport.is_closing():
            _end(self.transport, _TIMEOUT, "slow_head")


def _end(transport: Any, answer: bytes, reason: str) -> None:
    metrics.counter("http_refused_total", reason=reason).inc()
    transport.write(answer)
    transport.close()


_UNAVAILABLE = 503
_LAST_REQUESTS_S = 3
_PLAIN = "text/plain"
_UNREAD_MS = 30_000
"""Time in which a client must acknowledge sent data before its connection is closed (Linux)."""


class Endpoint(Protocol):
    """A part of an app that is not a declared route and runs while the app is served."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Context that is open while the app is served; may be entered again afterwards."""
        ...


@runtime_checkable
class RoutedEndpoint(Endpoint, Protocol):
    """An endpoint with a path."""

    path: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        ...


@runtime_checkable
class EndingEndpoint(Endpoint, Protocol):
    """An endpoint with long-lived responses, which it ends when the server stops."""

    def end(self) -> None:
        """End every open response."""
        ...


class Api(Starlette):
    """An app of declared routes and their middleware.

    Args:
        routes: In the order in which they are matched.
        middleware: Called from the first on.
    """

    def __init__(self, routes: Sequence[ServedRoute], middleware: Sequence[Middleware]) -> None:
        handlers: Any = problems.HANDLERS
        found = Middleware(Matching, routes=routes)
        super().__init__(routes=routes, middleware=[found, *middleware], exception_handlers=handlers)
        self.router.middleware_stack = answer  # the route is found already
        self._contract: dict[str, Any] | None = None

    def openapi(self) -> dict[str, Any]:
        """OpenAPI document of the routes."""
        if self._contract is None:
            self._contract = openapi.document(each for each in self.routes if isinstance(each, ServedRoute))
        return self._contract


def create_api(
    *,
    ready: Callable[[], tuple[bool, str]],
    registry: CollectorRegistry,
    routes: Sequence[ServedRoute] = (),
    alive: Callable[[], tuple[bool, str]] = lambda: (True, "ok"),
    endpoints: Sequence[Endpoint] = (),
    http: HttpSettings | None = None,
) -> Api:
    """An app with `/livez`, `/readyz`, `/metrics`, its contract, and the given routes.

    Args:
        ready: Whether the role is ready, and if not the reason, for instance what it still recovers.
        registry: The metrics to show.
        routes: The role's own (`answering.served_routes`). If a store does not answer, they return 503.
        alive: Whether the role makes progress, and if not what has stopped (`Watchdog.alive`).
        endpoints: Served beside the routes (`mcp.endpoint.McpEndpoint`), or only running meanwhile.
        http: Access (`security.access_of`) and limits; None: access for all with default limits, and `serve` listens
            on loopback only.

    Raises:
        ConfigurationError: Other machines could read without a token, or a token is invalid.
    """
    access, limits = None if http is None else access_of(http), http or HttpSettings()

    async def contract(_request: Request) -> Response:
        return Response(msgspec.json.encode(app.openapi()), media_type="application/json")

    async def docs(_request: Request) -> Response:
        page = pages.render("streams/http/docs_page.html.j2", contract=app.openapi())
        return Response(page, headers=pages.HEADERS, media_type="text/html")

    app = Api(
        [
            ServedRoute("/openapi.json", contract, ["GET", "HEAD"], reach="open"),
            ServedRoute("/docs", docs, ["GET"], reach="open"),
            *served_routes(Operations(ready, registry, alive)),
            *routes,
            *(ServedRoute(each.path, each, ["POST"]) for each in endpoints if isinstance(each, RoutedEndpoint)),
        ],
        [
            Middleware(RequestMeasures),
            Middleware(RequestGuard, access=access, rates=Rates(limits)),
            Middleware(
                Limits,
                max_concurrent_requests=limits.max_concurrent_requests,
                max_body_bytes=limits.max_body_bytes,
                request_timeout=limits.request_timeout,
            ),
            Middleware(Auditing, log=next((each for each in endpoints if isinstance(each, BatchedAudit)), None)),
        ],
    )
    app.state.endpoints = tuple(endpoints)
    app.state.everybody_reads = access is None or not access.callers
    app.state.http = limits
    return app


_OPERATIONS = Group("operations", "Health and metrics for orchestrators and Prometheus.")


class Operations:
    """Liveness, readiness and metrics of a role.

    Args:
        ready: Whether the role is ready, else the reason.
        registry: The role's metrics.
        alive: Whether the role makes progress, else what has stopped.
    """

    def __init__(
        self,
        ready: Callable[[], tuple[bool, str]],
        registry: CollectorRegistry,
        alive: Callable[[], tuple[bool, str]],
    ) -> None:
        self._ready, self._registry, self._alive = ready, registry, alive

    @_OPERATIONS.get("/livez", "check_liveness", reach="probe", also={_PLAIN: "ok"})
    async def livez(self) -> Response:
        """Return 200 while the event loop and consumption progress, else 503 with the reason: restart the worker."""
        is_alive, reason = self._alive()
        return PlainTextResponse(reason, 200 if is_alive else _UNAVAILABLE)

    @_OPERATIONS.get("/readyz", "check_readiness", reach="probe", also={_PLAIN: "ready"})
    async def readyz(self) -> Response:
        """Return 200 when the role is ready, else 503 with the reason."""
        is_ready, reason = self._ready()
        return PlainTextResponse(reason, 200 if is_ready else _UNAVAILABLE)

    @_OPERATIONS.get("/metrics", "read_metrics", reach="metrics", also={_PLAIN: "turntide_ready 1.0\n"})
    async def metrics(self) -> Response:
        """Return metrics in the Prometheus text format."""
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class _Server(uvicorn.Server):
    """uvicorn inside the role's event loop; the role handles signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    """A bound, listening socket, so that the port is known and early clients wait rather than fail.

    Raises:
        ConfigurationError: The address is in use or is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror}. Set another http.…_port (0 picks a free one)"
        ) from error
    # asyncio sets this only on sockets whose protocol is named, and these have none: head and body of an answer are two
    # packets, and the second would wait 40 ms for the first one's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Closing a connection waits until its client has taken what it was sent: one that reads nothing never would.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
    return listener


async def _served(app: Starlette, server: _Server, listener: socket.socket) -> None:
    """Serve with the app's endpoints running, in one task: contexts must be closed in the task that opened them."""
    async with AsyncExitStack() as stack:
        for endpoint in getattr(app.state, "endpoints", ()):
            await stack.enter_async_context(endpoint.running())
        await server.serve([listener])


async def serve_until(
    stop: asyncio.Event, role: str, port: int, http: HttpSettings, readiness: AskedReadiness, **served: Any
) -> None:
    """Serve a stateless role until `stop` is set, and check the service that its readiness depends on.

    Args:
        stop: Ends serving.
        role: For the log.
        port: As of `serve`.
        http: Where it listens, and who may ask what.
        readiness: Of the role.
        **served: `routes` and `endpoints` of `create_api`.

    Raises:
        ConfigurationError: As of `create_api` and `serve`.
    """
    looking = asyncio.create_task(readiness.keep_asking())
    try:
        async with serving(role, port, http, ready=readiness.ready, **served):
            await stop.wait()
    finally:
        looking.cancel()


@asynccontextmanager
async def serving(role: str, port: int, http: HttpSettings, **served: Any) -> AsyncIterator[None]:
    """Serve a role's app (`create_api`) at its port while the context is open."""
    api = create_api(registry=metrics.registry, http=http, **served)
    async with serve(api, http.host, port) as listening:
        log.info("http_listening", role=role, host=http.host, port=listening)
        yield


@asynccontextmanager
async def serve(app: Starlette, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Serve in the running loop while the context is open; yields the port, a free one for 0.

    On leaving, open requests have 3 s to finish.

    Raises:
        ConfigurationError: The address cannot be listened on, or others than this machine could read without a token.
    """
    if getattr(app.state, "everybody_reads", False) and not is_loopback(host):
        raise ConfigurationError(
            f"refused to listen on {host} without tokens: everybody who reaches it could read everything. Set "
            "http.tokens, or listen on 127.0.0.1"
        )
    listener = _listen(host, port)
    # The access log would hold queries, and those are conversation text.
    http: HttpSettings = getattr(app.state, "http", None) or HttpSettings()
    config = uvicorn.Config(
        app,
        http=bounded_protocol(http.head_timeout, http.max_connections),
        log_config=None,
        access_log=False,
        proxy_headers=False,  # X-Forwarded-For is anybody's word, and limits go by the address
        lifespan="off",
        timeout_graceful_shutdown=_LAST_REQUESTS_S,
    )
    server = _Server(config)
    serving = asyncio.create_task(_served(app, server, listener))
    try:
        yield listener.getsockname()[1]
    finally:
        for endpoint in getattr(app.state, "endpoints", ()):
            if isinstance(endpoint, EndingEndpoint):
                endpoint.end()
        server.should_exit = True
        await serving
