"""What `deploy/` hands to containers, read as the containers would: manifests, services, variables."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from streams.settings import Settings
from tests.support.tools import tool

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPOSE = ROOT / "deploy" / "compose"
CONTAINER = ROOT / "deploy" / "container"

Document = dict[str, Any]


def documents(text: str) -> list[Document]:
    """The documents of a YAML file."""
    return [msgspec.yaml.decode(part) for part in text.split("\n---\n")]


@cache
def built(overlay: str) -> str:
    """An overlay as `kubectl apply -k` would send it, put together by the real kustomize."""
    run = subprocess.run(  # noqa: S603 - a program that .ci/tools put there
        [tool("kustomize"), "build", KUBERNETES / "overlays" / overlay], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def of_kind(found: Iterable[Document], *kinds: str) -> dict[str, Document]:
    """The documents of these kinds, by name."""
    return {each["metadata"]["name"]: each for each in found if each["kind"] in kinds}


def pod(workload: Document) -> Document:
    """The pod of a Deployment or StatefulSet."""
    spec: Document = workload["spec"]["template"]["spec"]
    return spec


def variables() -> set[str]:
    """Every environment variable that the settings know."""

    def fields(model: type[BaseModel], beginning: str) -> Iterator[str]:
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from fields(kind, f"{beginning}{name.upper()}__")
            else:
                yield f"{beginning}{name.upper()}"

    return {"TURNTIDE_CONFIG", "TURNTIDE_KAFKA", *fields(Settings, "TURNTIDE_")}


def told(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment is for Turntide."""
    return {name: str(value) for name, value in environment.items() if name.startswith("TURNTIDE_")}
