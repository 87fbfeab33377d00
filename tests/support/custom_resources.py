"""Schemas of custom resources, as kubeconform reads them: others' own where packages have them, else their shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec


def write_schemas(crd: Path, folder: Path) -> None:
    """A custom resource's schemas as kubeconform reads them: nothing may stand there that they do not name."""
    spec = msgspec.yaml.decode(crd.read_bytes())["spec"]
    group = spec["group"].partition(".")[0]
    for version in spec["versions"]:
        schema = _closed(version["schema"]["openAPIV3Schema"])
        (folder / f"{spec['names']['singular']}-{group}-{version['name']}.json").write_text(json.dumps(schema))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    named = isinstance(closed.get("properties"), dict) and closed.get("type") == "object"
    if named and not closed.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    return closed


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": [*required],
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "minLength": 1}
_NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
_HEAD = {
    "apiVersion": {"const": "kafka.strimzi.io/v1"},
    "kind": _TEXT,
    "metadata": _object(
        {"name": _NAME, "namespace": _NAME, "labels": {"type": "object", "required": ["strimzi.io/cluster"]}}
    ),
}
_COUNT = {"type": "integer", "minimum": 1}
_OPERATIONS = [
    "Read", "Write", "Delete", "Alter", "Describe", "All", "IdempotentWrite", "ClusterAction", "Create",
    "AlterConfigs", "DescribeConfigs",
]  # fmt: skip
_RULE = _object(
    {
        "resource": _object(
            {"type": {"enum": ["topic", "group", "cluster", "transactionalId"]}},
            name=_TEXT,
            patternType={"enum": ["literal", "prefix"]},
        ),
        "operations": {"type": "array", "items": {"enum": _OPERATIONS}},
        "host": _TEXT,
    }
)
STRIMZI = {
    "kafkatopic": _object(
        {
            **_HEAD,
            "spec": _object(
                {
                    "topicName": {"type": "string", "maxLength": 249},
                    "partitions": _COUNT,
                    "replicas": _COUNT,
                    "config": {"type": "object", "additionalProperties": {"type": "string"}},
                }
            ),
        }
    ),
    "kafkauser": _object(
        {
            **_HEAD,
            "spec": _object(
                {
                    "authentication": _object({"type": {"const": "scram-sha-512"}}),
                    "authorization": _object(
                        {"type": {"const": "simple"}, "acls": {"type": "array", "items": _RULE, "minItems": 1}}
                    ),
                }
            ),
        }
    ),
}
"""The shape of Strimzi's resources as its manual has them; its own schemas are in no registry of packages."""
