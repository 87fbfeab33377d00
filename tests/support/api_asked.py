"""What a tenant's callers ask of every route with that tenant's ids, for the tests of the tenants' border."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import urlencode

from streams.api.mcp.endpoint import PATH as MCP_PATH
from tests.support.api_tenants import CHUNK_ID, MEMORY_ID, OTHER_MEMORY_ID, QUERY, SHARED, Names, names_of


class Asked(NamedTuple):
    """One request.

    Attributes:
        route: The template of its path.
    """

    route: str
    method: str
    path: str
    body: dict[str, Any] | None = None


def asked_of(contract: dict[str, Any], app: str, names: Names | None = None) -> list[Asked]:
    """Every operation of a contract and every tool with the ids of a tenant, what reads before what changes.

    What never ends (the live stream) is left out.

    Args:
        contract: As the role has it.
        app: The tenant.
        names: What it calls its users, sessions, projects and topics; None: as `names_of` says.

    Raises:
        KeyError: A route takes something that this module knows nothing for.
    """
    names = names or names_of(app)
    bodies = _bodies(app, names)
    asked = [Asked(MCP_PATH, "POST", MCP_PATH, _call(*each)) for each in _tools(app, names)]
    for route, operations in contract["paths"].items():
        for method, operation in operations.items():
            if operation["operationId"] == "stream_changes":
                continue
            queries = [each for each in operation.get("parameters", []) if each["in"] == "query"]
            places = _places(route, app, names, {each["name"]: each["required"] for each in queries})
            sent = bodies[f"{method} {_unversioned(route)}"] if "requestBody" in operation else [None]
            asked += [Asked(route, method.upper(), *each) for each in product(places, sent)]
    return sorted(asked, key=lambda each: ["GET", "POST", "PUT", "DELETE"].index(each.method))


def shown_of(route: str, app: str) -> str:
    """What tells that a route found something of a tenant's, where its answer need not hold a text."""
    return _SHOWN.get(_unversioned(route), "canary-of-{app}").replace("{app}", app)


_DONE = '"success":true'
_SHOWN = {
    **dict.fromkeys(("/v1/projects", "/v1/projects/{project_id}"), '"app_id":"{app}"'),
    "/v1/projects/{project_id}/standing": '"app_id":"{app}"',
    "/v1/projects/{project_id}/graph/path": '"found":true',
    "/v1/projects/{project_id}/pending/{pending_id}/{decision}": _DONE,
    "/v1/projects/{project_id}/conversations/{conversation_id}/status": _DONE,
    **{f"/v1/projects/{{project_id}}/{end}": _DONE for end in ("relationships", "consolidate", "import")},
    **dict.fromkeys(("/v1/users/{user_id}", "/v1/users/{user_id}/standing"), '"app_id":"{app}","known":true'),
    **dict.fromkeys(("/apps", "/apps/statistics"), '"appId":"{app}"'),
    "/apps/{app_id}/memories/stats": '"known":true',
    "/apps/{app_id}/uninstall": _DONE,
    "/apps/{app_id}/injection": _DONE,
    "/v1/erase": '"request_id":',
    "/v1/users/{user_id}/facts/{category}/{key}": '"app_id":"{app}"',
    "/v1/sessions/{session_id}/profile": '"app_id":"{app}"',
    "/v1/sessions/{session_id}/app": '"app_id":"{app}"',
}


def _unversioned(route: str) -> str:
    return route.removeprefix("/v1") if route.startswith("/v1/apps") else route


def _places(route: str, app: str, names: Names, queries: dict[str, bool]) -> Iterator[str]:
    """Paths of a route: with each of the tenant's ids, and each parameter that names one, given and not.

    Where an answer does not say whose it is, only what nobody else has is asked for, by its app.
    """
    ids: dict[str, tuple[str, ...]] = {
        "user_id": names.users,
        "session_id": names.sessions,
        "conversation_id": names.sessions,
        "project_id": names.projects,
        "app_id": (app,),
        "topic": (names.topic,),
        "turn": ("0",),
        "category": ("identity",),
        "key": ("name",),
        "alert_id": (f"alert-{app}",),
        "memory_id": (MEMORY_ID, OTHER_MEMORY_ID) if "/projects/" in route else ("1",),
        "pending_id": (MEMORY_ID,),
        "chunk_id": (CHUNK_ID,),
        "decision": ("promote",),
        "request_id": ("some-request",),
        "source_id": (MEMORY_ID,),
        "target_id": (OTHER_MEMORY_ID,),
        "relation": ("related_to",),
        "q": (QUERY,),
        "kind": ("memory", "episode", "chunk", "conversation", "pending"),
        "mode": ("keyword", "semantic", "hybrid"),
        "include_gone": ("true",),
        "include_shared": ("true",),
        "text": ("true",),
    }
    if route.startswith("/v1/live"):
        ids["kind"] = ("turns", "episodes", "facts", "memories")
    optional = ("app_id", "topic", "mode", "include_gone", "include_shared", "text")
    is_said = "{project_id}" not in route or "{app}" in _SHOWN.get(route, "{app}")
    if not is_said:
        ids |= {name: ids[name][-1:] for name in ("project_id", "conversation_id")}
    given = [
        [(name, value) for value in ids[name]] + ([("", "")] if not is_required and is_said else [])
        for name, is_required in queries.items()
        if is_required or name in optional
    ]
    for filled in product(*(ids[name] for name in re.findall(r"{(\w+)}", route))):
        path = re.sub(r"{\w+}", "{}", route).format(*filled)
        for query in product(*given):
            yield f"{path}?{urlencode([each for each in query if each[0]])}"


def _bodies(app: str, names: Names) -> dict[str, list[dict[str, Any]]]:
    """What is sent to each route that takes a body."""
    everywhere, users = _searches(app, names), _searches(app, names, with_session=False)
    after = {"after": {"session_id": names.sessions[-1], "turn": 0, "timeout_ms": 0}}
    of_app: list[dict[str, Any]] = [{}, {"app_memories": True}, {"injection_point": "conversation_review"}]
    searched = [*everywhere, {"query": QUERY, "app_id": app}, {"query": QUERY, "session_id": names.sessions[-1]}]
    found = [{"query": QUERY, "strategy": each} for each in ("tfidf", "hybrid")]
    talks: list[dict[str, Any]] = [{"threshold": 0}, *({"conversation_id": each} for each in names.sessions[::-1])]
    of_alert = {"session_id": names.sessions[0]}
    alerts = [{**of_alert, "alert_id": f"alert-{app}"}]
    project, edge = "/v1/projects/{project_id}", {"source_id": MEMORY_ID, "target_id": OTHER_MEMORY_ID}
    return {
        "post /v1/retrieve": [{**body, "max_distance": 2.0, **more} for body in users for more in ({}, after)],
        "post /v1/context": [{**body, **more} for body in everywhere for more in of_app],
        "post /v1/search": [{**body, "kind": kind} for body in searched for kind in ("turns", "episodes")],
        "post /v1/turns/wait": [
            {"session_id": each, "message_ids": [f"canary-of-{app}"], "timeout_ms": 0, **of}
            for each in names.sessions
            for of in ({}, {"app_id": app})
        ],
        "post /v1/erase": [
            {"app_id": app},
            {"app_id": app, "user_id": SHARED},
            *({"session_id": each, "app_id": app} for each in names.sessions),
        ],
        "put /v1/users/{user_id}/facts/{category}/{key}": [{"value": f"of-{app}"}],
        "put /v1/users/{user_id}/mode": [{"mode": "read_only"}],
        "put /v1/sessions/{session_id}/topics/{topic}": [{"importance": 0.9}],
        "post /v1/sessions/{session_id}/feedback": [{"value": 1.0, "turn": 0}],
        "put /v1/sessions/{session_id}/turns/{turn}": [{"content": f"canary-of-{app} said anew"}],
        "post /v1/live/alerts/{alert_id}/acknowledge": [of_alert],
        "post /v1/live/alerts/{alert_id}/label": [{**of_alert, "label": True}],
        "post /v1/live/alerts/label": [{"alerts": alerts, "label": True}],
        "put /v1/live/searches": [{"app_id": app, "search": {"title": f"canary-of-{app}"}}],
        "post /v1/live/alerts/triage": [{"alerts": alerts, "assignee": f"ops-{app}"}],
        "post /apps/{app_id}/uninstall": [{"purgeMemories": True}],
        "put /apps/{app_id}/injection": [{"inject": True}],
        "put /apps/{app_id}/memories/{memory_id}": [{"pinned": True}],
        f"post {project}/retrieve": [{**each, "threshold": 0} for each in found],
        f"post {project}/search": found,
        f"post {project}/context": [{"query": QUERY, **each} for each in talks],
        f"post {project}/memories": [{"content": f"a {app} thing", "type": "fact"}],
        f"put {project}/memories/{{memory_id}}": [{"importance": 0.9}],
        f"put {project}/relationships": [{**edge, "relation": "related_to"}],
        f"put {project}/conversations/{{conversation_id}}/status": [{"status": "paused"}],
        f"post {project}/import": [{}],
    }


def _searches(app: str, names: Names, *, with_session: bool = True) -> list[dict[str, Any]]:
    """Requests that name the tenant's ids in each field that there is, alone and together."""
    sessions: list[dict[str, str]] = [{"session_id": each} for each in names.sessions if with_session]
    return [
        {"query": QUERY, "user_id": user, **session, **app_id}
        for user in names.users
        for app_id in ({}, {"app_id": app})
        for session in ({}, *sessions)
    ]


def _tools(app: str, names: Names) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tools, and what they are given."""
    for body in _searches(app, names, with_session=False):
        yield "search_memory", body
        yield "list_facts", {name: value for name, value in body.items() if name != "query"}
    for body in _searches(app, names):
        yield "get_context", body
    for project, app_id in product(names.projects, ({}, {"app_id": app})):
        for tool in ("project_context", "search_project"):
            yield tool, {"project_id": project, "query": QUERY, **app_id}
    for session in names.sessions:
        for tool in ("get_session_history", "get_session_summary"):
            yield tool, {"session_id": session, "app_id": app}
        yield "get_session_app", {"session_id": session}
        yield "give_feedback", {"session_id": session, "value": 0.5, "turn": 0, "app_id": app}
        yield "correct_turn", {"session_id": session, "turn": 0, "content": f"canary-of-{app} again", "app_id": app}
    yield "correct_fact", {"user_id": SHARED, "app_id": app, "category": "identity", "key": "name", "value": "x"}
    yield "add_project_memory", {"project_id": SHARED, "content": "x", "type": "fact", "app_id": app}


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
