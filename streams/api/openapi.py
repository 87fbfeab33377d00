"""The contract at `/openapi.json`: schemas from the messages, examples, problems and the token for every route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from streams.api.apps import figures as apps_figures
from streams.api.apps import messages as apps_messages
from streams.api.erase import messages as erase_messages
from streams.api.live import messages as live_messages
from streams.api.projects import (
    answers as projects_answers,
)
from streams.api.projects import (
    command_messages as projects_deed_messages,
)
from streams.api.projects import (
    messages as projects_messages,
)
from streams.api.users import messages
from streams.http import problems
from streams.http.security import METRICS_PATH, OPEN_PATHS

_SCHEMAS = "#/components/schemas/{name}"
_ANSWERS: tuple[Any, ...] = (
    messages.Retrieve,
    messages.AssembleContext,
    messages.SearchMemory,
    messages.Retrieved,
    messages.AssembledContext,
    messages.Found,
    messages.FactAnswer,
    messages.EpisodeAnswer,
    messages.TurnAnswer,
    messages.StandingAnswer,
    apps_messages.EditMemory,
    apps_messages.UninstallApp,
    apps_messages.Memories,
    apps_messages.FoundMemories,
    apps_messages.Edited,
    apps_messages.Deleted,
    apps_messages.Purged,
    apps_messages.Uninstalled,
    apps_messages.Pending,
    apps_messages.Exported,
    apps_figures.SpaceStats,
    apps_figures.Statistics,
    apps_figures.ListedSpaces,
    erase_messages.Erase,
    erase_messages.Accepted,
    erase_messages.ErasureStanding,
    projects_messages.RetrieveMemories,
    projects_messages.BuildContext,
    projects_messages.SearchProject,
    projects_messages.FoundItems,
    projects_messages.ProjectContext,
    projects_answers.ProjectStanding,
    projects_answers.ProjectList,
    projects_answers.MemoryPage,
    projects_answers.ProjectMemoryAnswer,
    projects_answers.ValidMemories,
    projects_answers.PendingFacts,
    projects_answers.Conversations,
    projects_answers.ConversationAnswer,
    projects_answers.Episodes,
    projects_answers.ArcAnswer,
    projects_answers.GraphAnswer,
    projects_answers.RelatedMemories,
    projects_answers.PathAnswer,
    projects_answers.ExportPage,
    projects_deed_messages.AddMemory,
    projects_deed_messages.EditProjectMemory,
    projects_deed_messages.Relate,
    projects_deed_messages.SetStatus,
    projects_deed_messages.ImportItems,
    projects_deed_messages.DeedAnswer,
    projects_deed_messages.PendingDeed,
    live_messages.Me,
    live_messages.Timeline,
    live_messages.Said,
    live_messages.Hits,
    live_messages.Acknowledge,
    live_messages.Label,
    live_messages.Written,
    problems.ProblemDetails,
)
_PROBLEMS = {
    "400": "The request cannot be read.",
    "401": "No token, or one that is not known.",
    "403": "Another tenant's app, a role that is too low, or no permission to read text.",
    "413": "The body is too large.",
    "422": "A field is missing or wrong.",
    "429": "Too many requests of this token, or wrong tokens of this address; see Retry-After.",
    "503": "The store does not answer, or too many requests are under way; see Retry-After.",
    "504": "No answer in time, or the turn to wait for did not come.",
}
_PROBLEM_EXAMPLE = {
    "type": "urn:turntide:problem:invalid_request",
    "title": "Unprocessable Entity",
    "status": 422,
    "code": "invalid_request",
    "detail": "query: Expected `str` of length >= 1",
    "errors": [{"field": "query", "detail": "Expected `str` of length >= 1"}],
}


def body(kind: type, example: Mapping[str, Any]) -> dict[str, Any]:
    """`openapi_extra` of a route that decodes its body itself."""
    content = {"application/json": {"schema": _reference(kind), "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def answer(
    kind: Any, example: Any, *, status: HTTPStatus = HTTPStatus.OK, also: Mapping[str, str] | None = None
) -> dict[int | str, dict[str, Any]]:
    """`responses` of a route that encodes its answer itself.

    Args:
        kind: A message, or `list` of one.
        example: What it looks like.
        status: With which it comes.
        also: Other forms of the answer: example by media type.
    """
    schema = msgspec.json.schema_components([kind], ref_template=_SCHEMAS)[0][0]
    content = {"application/json": {"schema": schema, "example": example}}
    for media_type, text in (also or {}).items():
        content[media_type] = {"schema": {"type": "string"}, "example": text}
    return {status.value: {"description": status.phrase, "content": content}}


def example(of: Any, media_type: str = "application/json") -> dict[int | str, dict[str, Any]]:
    """`responses` of a route whose schema FastAPI knows: only what an answer looks like."""
    return {200: {"content": {media_type: {"example": of}}}}


def describe(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Let `app.openapi()` give the whole contract.

    Args:
        app: With all its routes.
        routers: Those that it includes; newer FastAPI keeps them as one route each.
    """
    every = chain(app.routes, *(each.routes for each in routers))
    routes = [route for route in every if isinstance(route, APIRoute) and route.include_in_schema]

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _contract(app, routes)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI's own way to extend it


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": _SCHEMAS.format(name=kind.__name__)}


def _contract(app: FastAPI, routes: Sequence[APIRoute]) -> dict[str, Any]:
    contract = get_openapi(
        title=app.title,
        version=app.version,
        summary="Memory of conversations: facts, episodes, topics, turns, memories of apps and of projects.",
        routes=app.routes,
        tags=[
            {"name": "memory", "description": "What is remembered of users, and finding it."},
            {"name": "sessions", "description": "Turns of one session."},
            {"name": "topics", "description": "What a session is about."},
            {"name": "apps", "description": "Memories of apps, for admins."},
            {"name": "projects", "description": "Memory of projects: typed, related, valid in time; deeds for admins."},
            {"name": "erasure", "description": "Forgetting somebody for good, for admins."},
            {"name": "live", "description": "Sessions, alerts and roles as they are now, for operators."},
            {"name": "operations", "description": "For orchestrators and Prometheus."},
        ],
    )
    components = contract.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= msgspec.json.schema_components(_ANSWERS, ref_template=_SCHEMAS)[1]
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "One of http.tokens; not needed if there is none."}
    }
    _restore_examples(routes, contract)
    for path, operations in contract["paths"].items():
        for operation in operations.values():
            _add_problems(operation, path)
    return contract


def _restore_examples(routes: Sequence[APIRoute], contract: dict[str, Any]) -> None:
    """Put examples back as they were given: FastAPI drops every null in them."""
    for route in routes:
        for method in route.methods or ():
            operation = contract["paths"][route.path_format][method.lower()]
            for status, given in route.responses.items():
                for media_type, content in given.get("content", {}).items():
                    operation["responses"][str(status)]["content"][media_type]["example"] = content["example"]
            if route.openapi_extra:
                operation |= route.openapi_extra


def _add_problems(operation: dict[str, Any], path: str) -> None:
    if path in OPEN_PATHS or path == METRICS_PATH:
        return
    operation["security"] = [{"token": []}, {}]
    content = {problems.MEDIA_TYPE: {"schema": _reference(problems.ProblemDetails), "example": _PROBLEM_EXAMPLE}}
    for status, meaning in _PROBLEMS.items():
        operation["responses"][status] = {"description": meaning, "content": content}
