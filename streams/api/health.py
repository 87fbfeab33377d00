"""The HTTP side of every role: is it alive, is it ready, what does it count. Loopback unless told otherwise."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from models.errors import ConfigurationError, StoreUnavailable

_UNAVAILABLE = 503
_LAST_REQUESTS_S = 3


def _always() -> tuple[bool, str]:
    return True, "ok"


def create_api(
    *,
    ready: Callable[[], tuple[bool, str]],
    registry: CollectorRegistry,
    routers: Sequence[APIRouter] = (),
    alive: Callable[[], tuple[bool, str]] = _always,
) -> FastAPI:
    """An app with `/livez`, `/readyz`, `/metrics` and the given routes.

    Args:
        ready: Whether the role does its work, and the reason why not, for instance what it still recovers.
        registry: The metrics to show.
        routers: The role's own routes. A store that does not answer them gives 503.
        alive: Whether everything moves, and if not what stands still (`Watchdog.alive`).
    """
    # No page of its own: it would load scripts from elsewhere. The contract is at /openapi.json.
    app = FastAPI(title="Turntide", docs_url=None, redoc_url=None)

    @app.get("/livez", response_class=PlainTextResponse)
    async def livez() -> PlainTextResponse:
        """200 while the event loop turns and records move, else 503 with what stands still: start the worker again."""
        is_alive, reason = alive()
        return PlainTextResponse(reason, 200 if is_alive else _UNAVAILABLE)

    @app.get("/readyz", response_class=PlainTextResponse)
    async def readyz() -> PlainTextResponse:
        """200 when the role does its work, else 503 with the reason."""
        is_ready, reason = ready()
        return PlainTextResponse(reason, 200 if is_ready else _UNAVAILABLE)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Prometheus text format."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(StoreUnavailable)
    async def store_unavailable(_request: Request, error: StoreUnavailable) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, _UNAVAILABLE)

    for router in routers:
        app.include_router(router)
    return app


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
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror}. Set another http.…_port (0 picks a free one)"
        ) from error


@asynccontextmanager
async def serve(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Serve in the running loop while the context is open; yields the port, a free one for 0.

    On leaving, open requests have 3 s to finish.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    listener = _listen(host, port)
    # The access log would hold queries, and those are conversation text.
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=_LAST_REQUESTS_S
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await serving
