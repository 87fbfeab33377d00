"""Apps of roles without a socket, and clients that call them directly."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from streams.http.answering import ServedRoute
from streams.http.health import Api, create_api


def api_of(routes: Sequence[ServedRoute] = (), **more: Any) -> Api:
    """An app of a role that is ready, with a registry of its own; `more` as of `create_api`."""
    return create_api(**{"ready": lambda: (True, "ready"), "registry": CollectorRegistry(), "routes": routes, **more})


def client_of(app: ASGIApp, headers: Mapping[str, str] | None = None, *, below: str = "") -> httpx.AsyncClient:
    """A client on this machine; what the app raises is answered, as a server would."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1{below}", headers=headers)
