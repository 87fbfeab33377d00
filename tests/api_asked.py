"""What a tenant's callers ask of every route with that tenant's ids, for the tests of the tenants' border."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from streams.api.mcp.server import PATH as MCP_PATH
from tests.api_tenants import MEMORY_ID, OTHER_MEMORY_ID, QUERY, SHARED

_PROJECT = "/v1/projects/{project_id:path}"
_MEMORY, _OTHER = MEMORY_ID, OTHER_MEMORY_ID


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
        *(
            (tool, {"project_id": project, "query": QUERY, "app_id": app_id})
            for tool in ("project_context", "search_project")
            for project in (SHARED, f"project-{app}")
            for app_id in (None, app)
        ),
        ("add_project_memory", {"project_id": SHARED, "content": "x", "type": "fact", "app_id": app}),
    ]
    return [Asked("POST", MCP_PATH, _call(name, arguments)) for name, arguments in calls]


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in arguments.items() if value is not None}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}


def _of_project(*ends: tuple[str, str, dict[str, Any] | None], named: bool = False) -> Callable[[str], list[Asked]]:
    """Each method and end of a path, of the tenant's project and of one whose id both have; with the app, and without.

    Args:
        ends: Method, end of the path, and body.
        named: Only of the tenant's own by its app: the answer does not say whose it is.
    """

    def asked(app: str) -> list[Asked]:
        projects, queries = (
            ((f"project-{app}",), (f"app_id={app}",)) if named else ((SHARED, f"project-{app}"), ("", f"app_id={app}"))
        )
        return [
            Asked(method, _place(project, end.format(app=app), query), _said_of(app, body))
            for method, end, body in ends
            for project in projects
            for query in queries
        ]

    return asked


def _place(project: str, end: str, query: str) -> str:
    path = f"/v1/projects/{project}" + (f"/{end}" if end else "")
    return f"{path}{'&' if '?' in end else '?'}{query}"


def _said_of(app: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
    if body is None:
        return None
    return {key: value.format(app=app) if isinstance(value, str) else value for key, value in body.items()}


def _projects(app: str) -> list[Asked]:
    return [Asked("GET", f"/v1/projects{query}") for query in ("", f"?app_id={app}")]


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
    "/v1/projects": _projects,
    _PROJECT: _of_project(("GET", "", None)),
    f"{_PROJECT}/standing": _of_project(("GET", "standing", None)),
    f"{_PROJECT}/retrieve": _of_project(
        *(("POST", "retrieve", {"query": QUERY, "threshold": 0, "strategy": each}) for each in ("tfidf", "hybrid"))
    ),
    f"{_PROJECT}/context": _of_project(
        ("POST", "context", {"query": QUERY, "threshold": 0}),
        ("POST", "context", {"query": QUERY, "conversation_id": "session-{app}"}),
        ("POST", "context", {"query": QUERY, "conversation_id": SHARED}),
    ),
    f"{_PROJECT}/search": _of_project(
        *(("POST", "search", {"query": QUERY, "strategy": each}) for each in ("tfidf", "hybrid"))
    ),
    f"{_PROJECT}/memories": _of_project(
        ("GET", "memories", None), ("POST", "memories", {"content": "a {app} thing", "type": "fact"})
    ),
    f"{_PROJECT}/valid_at": _of_project(("GET", "valid_at", None)),
    f"{_PROJECT}/pending": _of_project(("GET", "pending", None)),
    f"{_PROJECT}/conversations": _of_project(("GET", "conversations", None)),
    f"{_PROJECT}/conversations/{{conversation_id:path}}": _of_project(
        ("GET", "conversations/session-{app}", None), ("GET", f"conversations/{SHARED}", None)
    ),
    f"{_PROJECT}/conversations/{{conversation_id:path}}/status": _of_project(
        ("PUT", "conversations/session-{app}/status", {"status": "paused"}), named=True
    ),
    f"{_PROJECT}/episodes": _of_project(("GET", "episodes", None)),
    f"{_PROJECT}/arc": _of_project(("GET", "arc", None)),
    f"{_PROJECT}/graph": _of_project(("GET", "graph", None)),
    f"{_PROJECT}/graph/neighbours": _of_project(("GET", f"graph/neighbours?memory_id={_MEMORY}", None)),
    f"{_PROJECT}/graph/dependents": _of_project(("GET", f"graph/dependents?memory_id={_OTHER}", None)),
    f"{_PROJECT}/graph/path": _of_project(
        ("GET", f"graph/path?source_id={_MEMORY}&target_id={_OTHER}", None), named=True
    ),
    f"{_PROJECT}/relationships": _of_project(
        ("PUT", "relationships", {"source_id": _MEMORY, "target_id": _OTHER, "relation": "related_to"}),
        ("DELETE", f"relationships?source_id={_MEMORY}&target_id={_OTHER}&relation=related_to", None),
        named=True,
    ),
    f"{_PROJECT}/consolidate": _of_project(("POST", "consolidate", None), named=True),
    f"{_PROJECT}/export": _of_project(
        *(("GET", f"export?kind={kind}", None) for kind in ("memory", "episode", "chunk", "conversation", "pending"))
    ),
    f"{_PROJECT}/import": _of_project(("POST", "import", {}), named=True),
    f"{_PROJECT}/pending/{{pending_id}}/{{decision}}": _of_project(
        ("POST", f"pending/{_MEMORY}/promote", None), named=True
    ),
    f"{_PROJECT}/memories/{{memory_id}}": _of_project(
        ("GET", f"memories/{_MEMORY}", None),
        ("PUT", f"memories/{_MEMORY}", {"importance": 0.9}),
        ("DELETE", f"memories/{_MEMORY}", None),
    ),
}
"""What is asked with a tenant's ids, by the route's path."""
SHOWN = {
    "/v1/projects": '"app_id":"b"',
    _PROJECT: '"app_id":"b"',
    f"{_PROJECT}/standing": '"app_id":"b"',
    f"{_PROJECT}/pending/{{pending_id}}/{{decision}}": '"success":true',
    f"{_PROJECT}/conversations/{{conversation_id:path}}/status": '"success":true',
    f"{_PROJECT}/graph/path": '"found":true',
    f"{_PROJECT}/relationships": '"success":true',
    f"{_PROJECT}/consolidate": '"success":true',
    f"{_PROJECT}/import": '"success":true',
    "/v1/users/{user_id:path}/standing": '"app_id":"b","known":true',
    "/v1/users/{user_id:path}": '"app_id":"b","known":true',
    "/apps": '"appId":"b"',
    "/apps/statistics": '"appId":"b"',
    "/apps/{app_id:path}/memories/stats": '"known":true',
    "/apps/{app_id:path}/uninstall": '"success":true',
    "/v1/erase": '"request_id":',
}
"""What tells that a route found something of B's, where its answer holds no text."""


def _versioned(asks: Callable[[str], list[Asked]]) -> Callable[[str], list[Asked]]:
    return lambda app: [each._replace(path=f"/v1{each.path}") for each in asks(app)]


CASES |= {f"/v1{path}": _versioned(asks) for path, asks in CASES.items() if path.startswith("/apps")}
SHOWN |= {f"/v1{path}": told for path, told in SHOWN.items() if path.startswith("/apps")}
