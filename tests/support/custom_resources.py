"""Schemas of custom resources, as kubeconform reads them: others' own where packages have them, else their shape."""

import json
from pathlib import Path
from typing import Any

import msgspec

SHAPES = tuple(Path(__file__).with_name("data").glob("kafka*.yaml"))
"""Of Strimzi's resources."""


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
