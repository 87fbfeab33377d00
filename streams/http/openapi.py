"""OpenAPI document of declared routes: schemas by msgspec, an example of everything, problems, and the token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from importlib import metadata
from typing import Any

import msgspec

from streams.http import problems
from streams.http.answering import ServedRoute
from streams.http.examples import example_of
from streams.http.field_rules import RULES
from streams.http.route import Route, path_names, template

_SCHEMAS = "#/components/schemas/{name}"
_JSON = "application/json"
_TITLE = "Memory of conversations: facts, episodes, topics, turns, memories of apps and of projects."
_PROBLEMS = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read.",
    HTTPStatus.UNAUTHORIZED: "No token, or one that is not known.",
    HTTPStatus.FORBIDDEN: "Another tenant's app or site, a role that is too low, or no permission to read text.",
    HTTPStatus.NOT_FOUND: "There is no such thing, or none that the token reads.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.MISDIRECTED_REQUEST: "Without tokens: another host is named than this machine.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A field is missing or wrong.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests of this token, or wrong tokens of this address; see Retry-After.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The store does not answer, or too many requests are under way; see Retry-After.",
    HTTPStatus.GATEWAY_TIMEOUT: "No answer in time, or the turn to wait for did not come.",
}
"""What every route for holders of tokens may answer."""
_MORE_PROBLEMS = {
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not JSON by its Content-Type.",
    HTTPStatus.CONFLICT: "What is there does not allow it; the detail says why.",
}
_PROBLEM_EXAMPLE = {
    "type": "urn:turntide:problem:invalid_request",
    "title": "Unprocessable Entity",
    "status": 422,
    "code": "invalid_request",
    "detail": "query: Expected `str` of length >= 1",
    "errors": [{"field": "query", "detail": "Expected `str` of length >= 1"}],
}


def document(endpoints: Iterable[ServedRoute]) -> dict[str, Any]:
    """The whole contract.

    Args:
        endpoints: Those that declare nothing are left out.
    """
    listed = [(each.path, each.declared) for each in endpoints if each.declared is not None]
    paths: dict[str, dict[str, Any]] = {}
    for path, route in sorted(listed, key=lambda each: (each[0], each[1].method)):
        paths.setdefault(template(path), {})[route.method.lower()] = _operation(path, route)
    groups = {route.group.tag: route.group.about for _, route in listed}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Turntide", "summary": _TITLE, "version": metadata.version("turntide")},
        "servers": [{"url": "/", "description": "The role that gave this document."}],
        "tags": [{"name": tag, "description": about} for tag, about in groups.items()],
        "paths": paths,
        "components": {
            "schemas": _components(route for _, route in listed),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "One of http.tokens; not needed if there is none.",
                }
            },
        },
    }


def _components(routes: Iterable[Route]) -> dict[str, Any]:
    types: list[Any] = [problems.ProblemDetails]
    for route in routes:
        types += [route.body] if route.body is not None else []
        types += route.answers.values()
        types += [] if route.takes is None else [each.type for each in msgspec.structs.fields(route.takes)]
    schemas = msgspec.json.schema_components(types, ref_template=_SCHEMAS)[1]
    for kind in types:
        if isinstance(kind, type):
            schemas[kind.__name__] |= getattr(kind, RULES, {})
    schemas[problems.ProblemDetails.__name__]["examples"] = [_PROBLEM_EXAMPLE]
    return schemas


def _schema(kind: Any) -> dict[str, Any]:
    return msgspec.json.schema_components([kind], ref_template=_SCHEMAS)[0][0]


def _operation(path: str, route: Route) -> dict[str, Any]:
    further = route.paths.index(path)
    described: dict[str, Any] = {
        "tags": [route.group.tag],
        "summary": route.operation.replace("_", " ").capitalize(),
        "description": route.description,
        "operationId": f"{route.operation}_{further + 1}" if further else route.operation,
        "responses": dict(_responses(route)),
    }
    if route.group.formerly and further and not route.kept:
        described["deprecated"] = True
    if route.takes is not None:
        described["parameters"] = list(_parameters(route.takes, path))
    if route.body is not None:
        content = {_JSON: {"schema": _schema(route.body), "example": example_of(route.body)}}
        described["requestBody"] = {"required": True, "content": content}
    if route.reach == "token":
        described["security"] = [{"token": []}, {}]
    return described


def _parameters(takes: type[msgspec.Struct], path: str) -> Iterator[dict[str, Any]]:
    in_path = path_names(path)
    for each in msgspec.structs.fields(takes):
        schema = _given(_schema(each.type))
        described = {"name": each.encode_name, "in": "path" if each.encode_name in in_path else "query"}
        if description := schema.pop("description", ""):
            described["description"] = description
        if not each.required and each.default not in (None, msgspec.NODEFAULT):
            schema["default"] = msgspec.to_builtins(each.default)
        schema.setdefault("examples", [example_of(each.type, each.name)])
        yield {**described, "required": each.required, "schema": schema}


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """Of a parameter's: none is left out, and never said to be null."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    others = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**others, **kinds[0]} if len(kinds) == 1 else {**others, **({"anyOf": kinds} if kinds else {})}


def _responses(route: Route) -> Iterator[tuple[str, dict[str, Any]]]:
    also = {kind: {"schema": {"type": "string"}, "example": text} for kind, text in route.also.items()}
    for status, kind in (route.answers or {HTTPStatus.OK: None}).items():
        described = {} if kind is None else {_JSON: {"schema": _schema(kind), "example": example_of(kind)}}
        yield str(status.value), {"description": status.phrase, "content": described | also}
    if route.reach == "token":
        more = route.errors if route.method == "GET" else (*route.errors, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        meanings: Mapping[HTTPStatus, str] = _PROBLEMS | {each: _MORE_PROBLEMS[each] for each in more}
        schema = {"$ref": _SCHEMAS.format(name=problems.ProblemDetails.__name__)}
        content = {problems.MEDIA_TYPE: {"schema": schema}}
        for status, meaning in meanings.items():
            yield str(status.value), {"description": meaning, "content": content}
