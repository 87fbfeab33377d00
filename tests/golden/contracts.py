"""Generated contracts without what only describes: descriptions, titles and examples may get better, nothing else."""

from typing import Any

import msgspec

from jobs.contracts.command import views_contract
from jobs.contracts.documents import documents

_DESCRIBE = {"description", "title", "summary", "example", "examples", "tags", "operationId", "$defs", "license"}
_OF_SCHEMAS = ("#/$defs/", "#/components/schemas/")


def shown(value: Any) -> str:
    """As a line."""
    return msgspec.json.encode(value, order="deterministic").decode()


def stripped(document: dict[str, Any]) -> dict[str, Any]:
    """The document with every schema where it is referred to, so that names of classes do not matter."""
    schemas = document.get("components", {}).get("schemas", {}) | document.get("$defs", {})
    for value in document.values():  # of a tool: each schema has its own
        if isinstance(value, dict):
            schemas = value.get("$defs", {}) | schemas
    found: dict[str, Any] = _stripped(document, schemas, ())
    return found


def _stripped(value: Any, schemas: dict[str, Any], within: tuple[str, ...], *, named: bool = False) -> Any:
    if isinstance(value, list):
        return [_stripped(item, schemas, within) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith(_OF_SCHEMAS):
        name = reference.rpartition("/")[2]
        return {"again": len(within)} if name in within else _stripped(schemas[name], schemas, (*within, name))
    if "propertyName" in value:
        return {"propertyName": value["propertyName"], "mapping": sorted(value.get("mapping", {}))}
    return {
        key: _stripped(item, schemas, within, named=key == "properties")
        for key, item in value.items()
        if named or key not in _DESCRIBE
    }


def openapi_lines(document: dict[str, Any]) -> list[str]:
    """One line for each operation; in which order its parameters stand does not matter."""
    plain = stripped(document)
    lines = []
    for path, operations in sorted(plain["paths"].items()):
        for method, operation in sorted(operations.items()):
            operation.get("parameters", []).sort(key=lambda each: (each["in"], each["name"]))
            lines.append(f"{method.upper()} {path} {shown(operation)}")
    return [*lines, shown(plain.get("components", {}).get("securitySchemes", {}))]


async def contracts() -> dict[str, list[str]]:
    """JSON Schemas, AsyncAPI and the archive's views."""
    files = {name: msgspec.json.decode(text) for name, text in documents().items() if name.endswith(".json")}
    asyncapi = stripped(files.pop("asyncapi.json"))
    return {
        "contracts/schemas": [f"{name} {shown(stripped(document))}" for name, document in sorted(files.items())],
        "contracts/asyncapi": [
            f"{part} {name} {shown(item)}"
            for part, of in (("channels", asyncapi["channels"]), ("messages", asyncapi["components"]["messages"]))
            for name, item in sorted(of.items())
        ]
        + [shown(asyncapi["operations"])],
        "contracts/views": [
            f"{view} {msgspec.json.encode(columns).decode()}"
            for view, columns in sorted(msgspec.json.decode(views_contract())["views"].items())
        ],
    }
