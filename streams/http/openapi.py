"""OpenAPI document of declared routes: schemas by msgspec, an example of everything, problems, and the token."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from importlib import metadata
from typing import Any, get_args

import msgspec
from msgspec import inspect

from streams.http import problems
from streams.http.answering import ServedRoute
from streams.http.field_rules import RULES
from streams.http.pages import source
from streams.http.route import Route, path_names, template

_SAID, _LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:19:00Z"
_EARLY = ("started_at", "created_at", "valid_from", "recorded_at", "said_at", "requested_at", "date_from", "born")
_ITEM = "mjuohs00-9c1d22ab"
_TEXTS = tomllib.loads(source("streams/http/contract.toml"))
_NAMED = {name: value for value, names in _TEXTS["values"] for name in names.split()}
"""Values by the names of fields; of a list those of its items."""
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def example_of(kind: Any, name: str = "") -> Any:
    """An example of a type as it stands in JSON.

    Args:
        kind: Any that msgspec knows.
        name: Of the field that holds it.

    >>> example_of(int, "turn"), example_of(list[str], "keyTopics")
    (20, ['databases'])
    """
    return _example(inspect.type_info(kind), name)


def _example(info: inspect.Type, name: str) -> Any:
    match info:
        case inspect.Metadata():
            given = (info.extra_json_schema or {}).get("examples", [])
            return given[0] if given else _example(info.type, name)
        case inspect.StructType() | inspect.DataclassType():
            told = getattr(info.cls, RULES, {}).get("examples")
            tag = {info.tag_field: info.tag} if isinstance(info, inspect.StructType) and info.tag_field else {}
            made = {each.encode_name: _example(each.type, each.encode_name) for each in info.fields}
            return told[0] if told else tag | made
        case inspect.UnionType():
            return _example(next(each for each in info.types if not isinstance(each, inspect.NoneType)), name)
        case inspect.ListType() | inspect.SetType() | inspect.VarTupleType():
            return [_example(info.item_type, name)]
        case inspect.DictType():
            return {_example(info.key_type, "key"): _example(info.value_type, "")}
    return _single(info, _WORD.sub("_", name).lower())


def _single(info: inspect.Type, word: str) -> Any:
    named = _NAMED.get(word)
    match info:
        case inspect.EnumType() | inspect.LiteralType():
            values = [each.value for each in info.cls] if isinstance(info, inspect.EnumType) else info.values
            return named if named in values else values[0]
        case inspect.DateTimeType():
            return _SAID if word in _EARLY else _LATER
        case inspect.IntType() | inspect.FloatType():
            wanted = 1 if isinstance(info, inspect.IntType) else 0.5
            if isinstance(named, int | float) and not isinstance(named, bool):
                wanted = named
            least = wanted if info.ge is None else max(wanted, info.ge)
            return least if info.le is None else min(least, info.le)
        case inspect.StrType():
            likely = (named, _ITEM if word.endswith("id") else "…", _ITEM, "depends_on")
            return next(each for each in likely if isinstance(each, str) and re.search(info.pattern or "", each))
    return named is True if isinstance(info, inspect.BoolType) else None


_SCHEMAS = "#/components/schemas/{name}"
_JSON = "application/json"
_TITLE = "Memory of conversations: facts, episodes, topics, turns, memories of apps and of projects."


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
        "servers": [{"url": "/", "description": "The role that serves this document."}],
        "tags": [{"name": tag, "description": about} for tag, about in groups.items()],
        "paths": paths,
        "components": {
            "schemas": _components(route for _, route in listed),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "One of the tokens in `http.tokens`; not needed if none is configured.",
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
    bodies = [each for each in types if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    inner = [kind for body in bodies for field in msgspec.structs.fields(body) for kind in get_args(field.type)]
    for kind in (*bodies, *inner):
        if isinstance(kind, type) and kind.__name__ in schemas:
            schemas[kind.__name__] |= getattr(kind, RULES, {})
    schemas[problems.ProblemDetails.__name__]["examples"] = [_TEXTS["problem"]]
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
    if route.bodies:
        described["requestBody"] = {"required": True, "content": {kind: {} for kind in route.bodies}}
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
        headers = {name: {"description": what, "schema": {"type": "boolean"}} for name, what in route.headers.items()}
        told = {"headers": headers} if headers else {}
        yield str(status.value), {"description": status.phrase, **told, "content": described | also}
    if route.reach == "token":
        more = route.errors if route.method == "GET" else (*route.errors, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        meanings = _TEXTS["problems"] | {f"{code:d}": _TEXTS["more_problems"][f"{code:d}"] for code in more}
        schema = {"$ref": _SCHEMAS.format(name=problems.ProblemDetails.__name__)}
        content = {problems.MEDIA_TYPE: {"schema": schema}}
        for status, meaning in meanings.items():
            yield status, {"description": meaning, "content": content}
