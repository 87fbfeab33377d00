"""What a tenant's callers ask of every route with that tenant's ids, for the tests of the tenants' border."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from streams.api.mcp import PATH as MCP_PATH
from tests.api_tenants import QUERY, SHARED


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    body: dict[str, Any] | None = None


def _of_user(name: str) -> Callable[[str], list[Asked]]:
    """A look-up of each of the tenant's users, with its app, without one, and with another's."""

    def asked(app: str) -> list[Asked]:
        end = f"/{name}" if name else ""
        users = (SHARED, f"user-{app}")
        return [Asked("GET", f"/v1/users/{user}{end}{query}") for user in users for query in ("", f"?app_id={app}")]

    return asked


def _of_session(end: str, **params: str) -> Callable[[str], list[Asked]]:
    """A look-up of each of the tenant's sessions."""

    def asked(app: str) -> list[Asked]:
        query = "&".join(f"{key}={quote(value)}" for key, value in {**params, "include_gone": "true"}.items())
        paths = [end.format(app=app)]
        return [
            Asked("GET", f"/v1/sessions/{session}/{path}?{query}{more}")
            for session in (SHARED, f"session-{app}")
            for path in paths
            for more in ("", f"&topic=topic-{app}")
        ]

    return asked


def _bodies(app: str, *, with_session: bool = True) -> Iterator[dict[str, Any]]:
    """Requests that name the tenant's ids in each field that there is, alone and together."""
    for user in (SHARED, f"user-{app}"):
        for app_id in ({}, {"app_id": app}):
            yield {"query": QUERY, "user_id": user, **app_id}
            if with_session:
                for session in (SHARED, f"session-{app}"):
                    yield {"query": QUERY, "user_id": user, "session_id": session, **app_id}


def _retrieve(app: str) -> list[Asked]:
    after = {"after": {"session_id": f"session-{app}", "turn": 0, "timeout_ms": 0}}
    asked = [{**body, "max_distance": 2.0} for body in _bodies(app, with_session=False)]
    return [Asked("POST", "/v1/retrieve", {**body, **more}) for body in asked for more in ({}, after)]


def _context(app: str) -> list[Asked]:
    of_app: list[dict[str, Any]] = [{}, {"app_memories": True}, {"injection_point": "conversation_review"}]
    return [Asked("POST", "/v1/context", {**body, **more}) for body in _bodies(app) for more in of_app]


def _of_app(*ends: tuple[str, str, dict[str, Any] | None]) -> Callable[[str], list[Asked]]:
    """Each method and end of a path, of the tenant's app."""

    def asked(app: str) -> list[Asked]:
        return [Asked(method, f"/apps/{app}/{end}", body) for method, end, body in ends]

    return asked


def _apps(app: str) -> list[Asked]:
    _ = app
    return [Asked("GET", "/apps?limit=10")]


def _statistics(app: str) -> list[Asked]:
    _ = app
    return [Asked("GET", "/apps/statistics")]


def _erase(app: str) -> list[Asked]:
    bodies: list[dict[str, Any]] = [{"app_id": app}, {"app_id": app, "user_id": SHARED}]
    return [Asked("POST", "/v1/erase", body) for body in bodies]


def _erasure(_app: str) -> list[Asked]:
    return [Asked("GET", "/v1/erase/some-request")]


def _search(app: str) -> list[Asked]:
    bodies = [*_bodies(app), {"query": QUERY, "app_id": app}, {"query": QUERY, "session_id": f"session-{app}"}]
    return [Asked("POST", "/v1/search", {**body, "kind": kind}) for body in bodies for kind in ("turns", "episodes")]


def _tools(app: str) -> list[Asked]:
    calls = [
        *(("search_memory", body) for body in _bodies(app, with_session=False)),
        *(("get_context", body) for body in _bodies(app)),
        *(("list_facts", {**body, "query": None}) for body in _bodies(app, with_session=False)),
    ]
    return [Asked("POST", MCP_PATH, _call(name, arguments)) for name, arguments in calls]


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in arguments.items() if value is not None}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}


def _index(_app: str) -> list[Asked]:
    return [Asked("GET", "/v1/index")]


CASES: dict[str, Callable[[str], list[Asked]]] = {
    "/v1/retrieve": _retrieve,
    "/v1/context": _context,
    "/v1/search": _search,
    "/v1/users/{user_id:path}/facts": _of_user("facts"),
    "/v1/users/{user_id:path}/episodes": _of_user("episodes"),
    "/v1/users/{user_id:path}/recent": _of_user("recent"),
    "/v1/users/{user_id:path}/standing": _of_user("standing"),
    "/v1/users/{user_id:path}": _of_user(""),
    "/v1/sessions/{session_id:path}/similar": _of_session("similar", q=QUERY),
    "/v1/sessions/{session_id:path}/turns": _of_session("turns"),
    "/v1/sessions/{session_id:path}/topics": _of_session("topics"),
    "/v1/sessions/{session_id:path}/topics/search": _of_session("topics/search", q=QUERY),
    "/v1/sessions/{session_id:path}/context": _of_session("context"),
    "/v1/sessions/{session_id:path}/history": _of_session("history"),
    "/v1/sessions/{session_id:path}/stats": _of_session("stats"),
    "/v1/sessions/{session_id:path}/topics/{topic}": _of_session("topics/topic-{app}"),
    "/v1/index": _index,
    "/apps/{app_id:path}/memories": _of_app(
        ("GET", "memories", None), ("GET", "memories?include_shared=true", None), ("DELETE", "memories", None)
    ),
    "/apps/{app_id:path}/memories/{memory_id}": _of_app(
        ("GET", "memories/1", None), ("PUT", "memories/1", {"pinned": True}), ("DELETE", "memories/1", None)
    ),
    "/apps/{app_id:path}/memories/export": _of_app(("GET", "memories/export", None)),
    "/apps/{app_id:path}/memories/search": _of_app(
        *(("GET", f"memories/search?q=canary&mode={mode}", None) for mode in ("keyword", "semantic", "hybrid"))
    ),
    "/apps/{app_id:path}/memories/stats": _of_app(("GET", "memories/stats", None)),
    "/apps/{app_id:path}/uninstall": _of_app(("POST", "uninstall", {"purgeMemories": True})),
    "/apps": _apps,
    "/apps/statistics": _statistics,
    "/v1/erase": _erase,
    "/v1/erase/{request_id}": _erasure,
    MCP_PATH: _tools,
}
"""What is asked with a tenant's ids, by the route's path."""
SHOWN = {
    "/v1/users/{user_id:path}/standing": '"app_id":"b","known":true',
    "/v1/users/{user_id:path}": '"app_id":"b","known":true',
    "/apps": '"appId":"b"',
    "/apps/statistics": '"appId":"b"',
    "/apps/{app_id:path}/memories/stats": '"known":true',
    "/apps/{app_id:path}/uninstall": '"success":true',
    "/v1/erase": '"request_id":',
}
"""What tells that a route found something of B's, where its answer holds no text."""
