"""The HTTP side of every role: is it alive, is it ready, what does it count. Loopback unless told otherwise.

Every request passes `guard.Guard` (who asks, and how often), `limits.Limits` (how much) and `audit.Auditing` (what is
noted of it), then the routes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from enum import Enum
from importlib import metadata
from typing import Protocol, runtime_checkable

import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.routing import Route
from starlette.types import ASGIApp

from models.errors import ConfigurationError
from streams.api import openapi
from streams.api.users import examples
from streams.http import problems
from streams.http.audit import Auditing, AuditLog
from streams.http.connections import bounded_protocol
from streams.http.guard import Guard
from streams.http.limits import Limits
from streams.http.measured import Measured
from streams.http.own_machine import is_loopback
from streams.http.rates import Rates
from streams.http.security import Access
from streams.settings.http import HttpSettings

_UNAVAILABLE = 503
_LAST_REQUESTS_S = 3
_PLAIN = "text/plain"
_UNREAD_MS = 30_000
"""How long a client may leave what it was sent before its connection is cut (Linux)."""


class Endpoint(Protocol):
    """A part of an app that is no FastAPI route and has something to keep running while it is served."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Open while the app is served; may be entered again afterwards."""
        ...


@runtime_checkable
class RoutedEndpoint(Endpoint, Protocol):
    """One that is asked at a path."""

    path: str

    @property
    def app(self) -> ASGIApp:
        """What answers at the path."""
        ...


@runtime_checkable
class EndingEndpoint(Endpoint, Protocol):
    """One whose answers last: it ends them when the server stops."""

    def end(self) -> None:
        """Let every answer end that is under way."""
        ...


def _always() -> tuple[bool, str]:
    return True, "ok"


def create_api(
    *,
    ready: Callable[[], tuple[bool, str]],
    registry: CollectorRegistry,
    routers: Sequence[APIRouter] = (),
    alive: Callable[[], tuple[bool, str]] = _always,
    access: Access | None = None,
    endpoints: Sequence[Endpoint] = (),
    limits: HttpSettings | None = None,
) -> FastAPI:
    """An app with `/livez`, `/readyz`, `/metrics` and the given routes.

    Args:
        ready: Whether the role does its work, and the reason why not, for instance what it still recovers.
        registry: The metrics to show.
        routers: The role's own routes. A store that does not answer them gives 503.
        alive: Whether everything moves, and if not what stands still (`Watchdog.alive`).
        access: Who may read what (`security.access_of`); None: everybody, and `serve` listens on loopback only.
        endpoints: Served beside the routes (`mcp.McpEndpoint`), or only running meanwhile.
        limits: Size, time and number of requests; None: the settings' defaults.
    """
    limits = limits or HttpSettings()
    # No page of its own: it would load scripts from elsewhere. The contract is at /openapi.json.
    # No redirects for a slash too many: deleting a memory without its number would delete all of them.
    app = FastAPI(
        title="Turntide",
        version=metadata.version("turntide"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_operations(app, ready, registry, alive)
    for router in routers:
        app.include_router(router)
    for endpoint in endpoints:
        if isinstance(endpoint, RoutedEndpoint):
            app.router.routes.append(Route(endpoint.path, endpoint.app, methods=["POST"]))
    app.state.endpoints = tuple(endpoints)
    app.state.everybody_reads = access is None or not access.callers
    problems.install(app)
    openapi.describe(app, routers)
    app.state.http = limits
    app.add_middleware(Auditing, log=next((each for each in endpoints if isinstance(each, AuditLog)), None))
    app.add_middleware(
        Limits,
        max_concurrent_requests=limits.max_concurrent_requests,
        max_body_bytes=limits.max_body_bytes,
        request_timeout=limits.request_timeout,
    )
    app.add_middleware(Guard, access=access, rates=Rates(limits))
    app.add_middleware(Measured)  # the last one added is the first one asked
    return app


def _add_operations(
    app: FastAPI,
    ready: Callable[[], tuple[bool, str]],
    registry: CollectorRegistry,
    alive: Callable[[], tuple[bool, str]],
) -> None:
    tags: list[str | Enum] = ["operations"]

    @app.get("/livez", response_class=PlainTextResponse, tags=tags, responses=openapi.example("ok", _PLAIN))
    async def livez() -> PlainTextResponse:
        """200 while the event loop turns and records move, else 503 with what stands still: start the worker again."""
        is_alive, reason = alive()
        return PlainTextResponse(reason, 200 if is_alive else _UNAVAILABLE)

    @app.get("/readyz", response_class=PlainTextResponse, tags=tags, responses=openapi.example("ready", _PLAIN))
    async def readyz() -> PlainTextResponse:
        """200 when the role does its work, else 503 with the reason."""
        is_ready, reason = ready()
        return PlainTextResponse(reason, 200 if is_ready else _UNAVAILABLE)

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        tags=tags,
        responses=openapi.example(examples.METRICS, _PLAIN),
    )
    async def metrics() -> Response:
        """Prometheus text format."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Server(uvicorn.Server):
    """uvicorn inside somebody else's event loop: signals are the role's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    """Bound and listening, so that the port is known and clients wait rather than fail.

    Raises:
        ConfigurationError: The address is taken or not this machine's.
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


async def _served(app: FastAPI, server: _Server, listener: socket.socket) -> None:
    """Serve with the app's endpoints running, in one task: what they open must be closed where it was opened."""
    async with AsyncExitStack() as stack:
        for endpoint in getattr(app.state, "endpoints", ()):
            await stack.enter_async_context(endpoint.running())
        await server.serve([listener])


@asynccontextmanager
async def serve(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Serve in the running loop while the context is open; yields the port, a free one for 0.

    On leaving, open requests have 3 s to finish.

    Raises:
        ConfigurationError: The address cannot be listened on, or others than this machine could read without a token.
    """
    if getattr(app.state, "everybody_reads", False) and not is_loopback(host):
        raise ConfigurationError(
            f"refused to listen on {host}: everybody who reaches it would read everything. Set http.tokens, or "
            "listen on 127.0.0.1"
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
