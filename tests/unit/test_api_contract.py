"""The contract at /openapi.json: complete, with an example of everything, and true."""

import tomllib
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from openapi_spec_validator import validate

from streams.http.pages import source
from tests.support.api_doubles import Log, Served

TOOLS = tomllib.loads(source("streams/api/mcp/tools.toml"))


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    """The index role's."""
    made: dict[str, Any] = Served(log=Log()).app.openapi()
    return made


def operations(contract: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every operation by method and path."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in contract["paths"].items()
        for method, operation in methods.items()
    }


def body_of(operation: dict[str, Any]) -> str:
    """Name of the schema of what is sent; empty for nothing."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]


def answered(operation: dict[str, Any]) -> list[dict[str, Any]]:
    """What each answer holds that is no error."""
    return [answer["content"] for status, answer in operation["responses"].items() if status < "300"]


def test_every_operation_has_examples(contract: dict[str, Any]) -> None:
    """Of its answer, its body, and each of its parameters."""
    missing = []
    for name, operation in operations(contract).items():
        contents = answered(operation)
        if "requestBody" in operation:
            contents.append(operation["requestBody"]["content"])
        missing += [name for content in contents for each in content.values() if "example" not in each]
        for parameter in operation.get("parameters", []):
            if not parameter["schema"].get("examples"):
                missing.append(f"{name} {parameter['name']}")

    assert missing == []
    assert len(operations(contract)) == 98


def test_every_operation_is_described(contract: dict[str, Any]) -> None:
    """A title, a description, a tag; and the token where one is needed."""
    for operation in operations(contract).values():
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]
    unguarded = {name for name, operation in operations(contract).items() if "security" not in operation}

    assert unguarded == {"GET /livez", "GET /readyz", "GET /metrics"}
    assert contract["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.mark.behaviour("project-22")
def test_calls_say_what_counts_as_accessed(contract: dict[str, Any]) -> None:
    """Those that take `record_access` say so; others that give memories or topics deny it, and so does a search."""
    told = {each["operationId"]: each["description"] for each in operations(contract).values()}
    recording = [
        each["operationId"]
        for each in operations(contract).values()
        if "record_access" in str(contract["components"]["schemas"].get(body_of(each), {}))
    ]

    assert recording == ["assemble_project_context", "retrieve_project_memory", "search_project"]
    assert all("counts as accessed, unless `record_access` is false" in told[each] for each in recording)
    assert {each for each, text in told.items() if "Does not count as an access" in text} == {
        *("search_memory", "search_topics", "assemble_topic_context", "list_project_memories", "get_project_memory"),
        *("list_valid_memories", "list_project_episodes", "get_narrative_arc", "export_project_items"),
        *("get_graph", "list_neighbours", "list_dependents", "find_path"),
    }
    assert all("counts as accessed" in TOOLS[each]["about"] for each in ("project_context", "search_project"))


def test_errors_are_problems(contract: dict[str, Any]) -> None:
    """No operation promises another form of an error."""
    told = {
        media
        for operation in operations(contract).values()
        for status, answer in operation["responses"].items()
        if status >= "400"
        for media in answer["content"]
    }

    assert told == {"application/problem+json"}
    assert not {"HTTPValidationError", "ValidationError"} & set(contract["components"]["schemas"])


def test_examples_fit_their_schemas(contract: dict[str, Any]) -> None:
    """An example that the contract itself refuses teaches nothing."""
    for operation in operations(contract).values():
        contents = [*answered(operation), operation.get("requestBody", {}).get("content", {})]
        for content in contents:
            for each in content.values():
                schema = {**each.get("schema", {}), "components": contract["components"]}
                jsonschema.validate(each["example"], schema)


def test_the_document_is_openapi(contract: dict[str, Any]) -> None:
    """By its own schema; each operation has an id of its own, and clients know where to ask."""
    validate(contract)
    ids = [operation["operationId"] for operation in operations(contract).values()]

    assert len(ids) == len({*ids})
    assert [each["url"] for each in contract["servers"]] == ["/"]
