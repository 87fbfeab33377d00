"""The contracts as documents, from the events and the topic table: JSON Schema, AsyncAPI, data dictionary."""

from typing import Any

import msgspec
from msgspec import Struct

from models.entities import REGISTRY, carried_by
from models.events import DeadLetter, Output
from models.events.fields import TYPE
from models.events.topics import Cleanup, Topic
from models.wire.envelope import CONTENT_TYPE, SCHEMA_HEADER, schema_of, tag_of

Document = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_BINDING = "0.5.0"
_DEFAULT_PREFIX = "turntide"

PUBLIC_TOPICS: tuple[Topic, ...] = tuple(topic for topic in REGISTRY.topics if topic.public)
EVENTS: tuple[type[Struct], ...] = tuple(event for topic in PUBLIC_TOPICS for event in carried_by(topic))


def documents() -> dict[str, str]:
    """Every generated file: its path below the contracts' folder, and its text."""
    files = {f"schemas/{schema_of(event)}.json": _json(json_schema(event)) for event in EVENTS}
    return {**files, "asyncapi.json": _json(asyncapi()), "data-dictionary.md": data_dictionary()}


def _json(document: Document) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def json_schema(event: type[Struct]) -> Document:
    """JSON Schema, draft 2020-12, of one event; unknown fields are allowed, so that events can grow."""
    components = _components(event, ref_template="#/$defs/{name}")
    root = components.pop(event.__name__)
    definitions = {"$defs": components} if components else {}
    return {"$schema": _DRAFT, "$id": f"urn:turntide:schema:{schema_of(event)}", **root, **definitions}


def _components(*events: type[Struct], ref_template: str = "{name}") -> dict[str, Document]:
    """Schemas of events and of the structures in them; the tag is the one property that is no field."""
    components: dict[str, Document] = msgspec.json.schema_components(events, ref_template=ref_template)[1]
    for component in components.values():
        for schema in component.get("properties", {}).values():
            options = [each["description"] for each in schema.get("anyOf", ()) if "description" in each]
            schema["description"] = schema.pop("description", (*options, TYPE.description)[0])
    return components


def asyncapi() -> Document:
    """AsyncAPI 3.0, seen from Turntide: it receives the turns and sends everything else."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Turntide",
            "version": "1.0.0",
            "description": "Topics of Turntide. Schemas grow by optional fields only; a breaking change is a new "
            "topic. Delivery is at least once: repeats of an output carry the same `ce_id`.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": CONTENT_TYPE,
        "channels": {_channel(topic): _channel_object(topic) for topic in PUBLIC_TOPICS},
        "operations": {f"{_action(topic)}-{_channel(topic)}": _operation(topic) for topic in PUBLIC_TOPICS},
        "components": {"messages": {tag_of(event): _message(event) for event in EVENTS}},
    }


def _channel(topic: Topic) -> str:
    return topic.name.rpartition(".")[0]


def _action(topic: Topic) -> str:
    return "receive" if topic.owner == "producers" else "send"


def _channel_object(topic: Topic) -> Document:
    return {
        "address": topic.full_name(_DEFAULT_PREFIX),
        "title": _channel(topic),
        "description": f"{topic.purpose} Written by: {topic.owner}.",
        "messages": {tag_of(event): {"$ref": f"#/components/messages/{tag_of(event)}"} for event in carried_by(topic)},
        "bindings": {
            "kafka": {
                "partitions": topic.partitions,
                "topicConfiguration": _configuration(topic),
                "bindingVersion": _BINDING,
            }
        },
    }


def _configuration(topic: Topic) -> Document:
    kept_ms = -1 if topic.retention is None else int(topic.retention.total_seconds() * 1000)
    retained = {"retention.ms": kept_ms} if topic.cleanup is Cleanup.DELETE else {}
    cut = {} if topic.segment is None else {"segment.ms": int(topic.segment.total_seconds() * 1000)}
    return {
        "cleanup.policy": [topic.cleanup.value],
        **retained,
        **cut,
        "max.message.bytes": topic.max_message_bytes,
        "message.timestamp.type": "LogAppendTime" if topic.log_append_time else "CreateTime",
    }


def _operation(topic: Topic) -> Document:
    channel = f"#/channels/{_channel(topic)}"
    return {
        "action": _action(topic),
        "channel": {"$ref": channel},
        "summary": topic.purpose,
        "messages": [{"$ref": f"{channel}/messages/{tag_of(event)}"} for event in carried_by(topic)],
    }


def _message(event: type[Struct]) -> Document:
    key = next(topic.key for topic in PUBLIC_TOPICS if event in carried_by(topic))
    return {
        "name": schema_of(event),
        "title": event.__name__,
        "summary": (event.__doc__ or "").strip().partition("\n")[0],
        "contentType": CONTENT_TYPE,
        "headers": _headers(event),
        "payload": {"$ref": f"./schemas/{schema_of(event)}.json"},
        "bindings": {
            "kafka": {"key": {"type": "string", "description": key}, "bindingVersion": _BINDING},
        },
    }


def _headers(event: type[Struct]) -> Document:
    """Constant ones as `const`; on inputs they are welcome, not required."""
    constant: Document = {SCHEMA_HEADER: {"const": schema_of(event)}, "content-type": {"const": CONTENT_TYPE}}
    if not issubclass(event, Output | DeadLetter):
        return {"type": "object", "properties": constant}
    properties = {
        **constant,
        "ce_specversion": {"const": "1.0"},
        "ce_type": {"const": f"turntide.{schema_of(event)}"},
        "ce_source": {"type": "string"},
        "ce_id": {"type": "string", "description": "The event's `id`."},
        "ce_time": {"type": "string", "format": "date-time"},
    }
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def data_dictionary() -> str:
    """Every topic, event and field in one Markdown page."""
    lines = [
        "# Data dictionary",
        "",
        "Generated by `turntide ops contracts write`; change the events, not this file.",
        "",
        f"Topic names carry a prefix, `{_DEFAULT_PREFIX}` unless set otherwise. Values are JSON, keys are strings.",
        "Headers of outputs are CloudEvents in binary mode; `schema` names the value's schema.",
    ]
    for topic in PUBLIC_TOPICS:
        kept = f"deleted after {topic.retention.days} days" if topic.retention else "compacted by key"
        lines += ["", f"## {topic.name}", "", topic.purpose, ""]
        lines.append(f"Key: {topic.key}. Written by: {topic.owner}. {topic.partitions} partitions, {kept}.")
        for event in carried_by(topic):
            lines += [
                "",
                f"### {schema_of(event)}",
                "",
                *_lines(event.__doc__ or ""),
                "",
                *_rows(_components(event)[event.__name__]),
            ]
    lines += ["", "## Parts of events"]
    for name, part in _parts().items():
        lines += ["", f"### {name}", "", *_lines(part.get("description", "")), "", *_rows(part)]
    return "\n".join(lines) + "\n"


def _lines(docstring: str) -> list[str]:
    return [line.strip() for line in docstring.strip().splitlines()]


def _parts() -> dict[str, Document]:
    """Structs and enumerations that events are made of."""
    events = {event.__name__ for event in EVENTS}
    return {name: component for name, component in sorted(_components(*EVENTS).items()) if name not in events}


def _rows(schema: Document) -> list[str]:
    if "enum" in schema:
        return ["One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."]
    required = set(schema.get("required", ()))
    rows = ["| field | type | required | meaning |", "|---|---|---|---|"]
    for field, of in schema["properties"].items():
        needed = "yes" if field in required else "no"
        rows.append(f"| {field} | {_type(of)} | {needed} | {of['description']} |")
    return rows


def _type(schema: Document) -> str:
    """A field's type in a few words."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#{schema['$ref'].lower()})"
    if "anyOf" in schema:
        # In their order, each once: a scalar's null may stand in it twice.
        return " or ".join(dict.fromkeys(_type(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}" if isinstance(schema["items"], dict) else "list of pairs"
    if schema["type"] == "object":
        return f"map to ({_type(schema['additionalProperties'])})"
    words = {"date-time": "time", "base64": "bytes, base64"}
    refined: str = schema.get("format") or schema.get("contentEncoding") or ""
    return words.get(refined, str(schema["type"])) + _bounds(schema)


def _bounds(schema: Document) -> str:
    if "minimum" in schema:
        low, high = schema["minimum"], schema["maximum"]
        return f" {low} to {high}" if low < 0 else f" {low}-{high}"
    if "maxLength" in schema:
        return f", {schema.get('minLength', 0)}-{schema['maxLength']} characters"
    return ""
