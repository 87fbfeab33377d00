"""The committed contracts are what the code says, and what was once written decodes for ever."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from jobs.alerts.command import harmless_alert
from jobs.contracts.command import drift
from jobs.contracts.documents import EVENTS, PUBLIC_TOPICS, asyncapi, json_schema
from models.wire.envelope import headers_for, schema_of

CONTRACTS = Path(__file__).parents[2] / "deploy" / "contracts"
EXAMPLES = sorted((CONTRACTS / "examples").glob("*.json"))


def event_of(example: Path) -> type[msgspec.Struct]:
    """The event that an example record is of, by its file name `<tag>.v1[-<n>].json`."""
    schema = example.stem.partition("-")[0]
    return next(event for event in EVENTS if schema_of(event) == schema)


def test_committed_contracts_are_current() -> None:
    """Whoever changes an event or a topic sees the change in the contracts: `turntide ops contracts write`."""
    assert drift(CONTRACTS) == {}


def test_every_event_has_an_example() -> None:
    """An event without an example has no promise to keep."""
    assert set(EVENTS) == {event_of(example) for example in EXAMPLES}


def _as_once(record: Any, written: Any) -> Any:
    """What is written now, without the fields that were added since, wherever they stand."""
    if isinstance(record, dict) and isinstance(written, dict):
        return {field: _as_once(value, written[field]) for field, value in record.items() if field in written}
    if isinstance(record, list) and isinstance(written, list) and len(record) == len(written):
        return [_as_once(*both) for both in zip(record, written, strict=True)]
    return written


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_decode_for_ever(example: Path) -> None:
    """A record of any version decodes, and every field of it still means something."""
    record = json.loads(example.read_bytes())
    event = msgspec.json.decode(example.read_bytes(), type=event_of(example))
    written = json.loads(msgspec.json.encode(event))

    assert record == _as_once(record, written)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit_their_schema(example: Path) -> None:
    """It is one of the draft that it names, and takes what the code writes, also with a field that is added later."""
    schema = json_schema(event_of(example))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    later = {**json.loads(example.read_bytes()), "new": 1}

    assert [error.message for error in validator.iter_errors(later)] == []


def references(node: Any) -> list[str]:
    """Every `$ref` below a node."""
    if isinstance(node, dict):
        here = [node["$ref"]] if "$ref" in node else []
        return here + [found for value in node.values() for found in references(value)]
    return [found for value in node for found in references(value)] if isinstance(node, list) else []


def test_asyncapi_references_lead_somewhere() -> None:
    """Inside the document, and to the schema files beside it."""
    document = asyncapi()
    for reference in references(document):
        if reference.startswith("#/"):
            node = document
            for step in reference.removeprefix("#/").split("/"):
                node = node[step]
        else:
            assert (CONTRACTS / reference).is_file(), reference


def test_asyncapi_covers_every_public_topic() -> None:
    """Addresses, directions and Kafka bindings, seen from Turntide; the private changelog is left out."""
    document = asyncapi()

    assert ("3.0.0", {topic.full_name("turntide") for topic in PUBLIC_TOPICS}) == (
        document["asyncapi"],
        {channel["address"] for channel in document["channels"].values()},
    )
    assert [name for name, op in document["operations"].items() if op["action"] == "receive"] == ["receive-turns"]
    assert {"0.5.0"} == {channel["bindings"]["kafka"]["bindingVersion"] for channel in document["channels"].values()}


NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def test_output_headers() -> None:
    """The attributes that CloudEvents require, the event's id, its time in UTC, and the schema.

    They are the caller's own: adding a header to one record must not add it to the next.
    """
    berlin = timezone(timedelta(hours=1))
    alert = msgspec.structs.replace(harmless_alert(NOW), timestamp=NOW.astimezone(berlin))
    headers_for(alert).append(("traceparent", b"00"))

    assert {
        "ce_specversion": b"1.0",
        "ce_id": alert.id.encode(),
        "ce_type": b"turntide.alert_changed.v1",
        "ce_source": b"/turntide/sessions",
        "ce_time": b"2026-01-05T09:30:00Z",
        "content-type": b"application/json",
        "schema": b"alert_changed.v1",
    } == dict(headers_for(alert))
