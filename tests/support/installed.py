"""What some requirements bring, by the metadata of what is installed here."""

import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def brought_by(extras: Iterable[str]) -> set[str]:
    """Names of all packages that a plain installation with these extras has, as far as they are installed here."""
    optional: dict[str, list[str]] = PROJECT["optional-dependencies"]
    names: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(line), "") for line in PROJECT["dependencies"]]
    waiting += [(Requirement(line), "") for extra in extras for line in optional[extra]]
    while waiting:
        requirement, of_extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": of_extra}):
            continue
        name = canonicalize_name(requirement.name)
        for extra in ["", *requirement.extras]:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            if name == "turntide":
                waiting += [(Requirement(line), "") for line in optional.get(extra, [])]
                continue
            names.add(name)
            try:
                waiting += [(Requirement(line), extra) for line in metadata.requires(name) or []]
            except metadata.PackageNotFoundError:
                continue  # of another system or Python
    return names


def bytes_of(name: str) -> int:
    """Bytes of an installed package's files, without bytecode."""
    try:
        files = [Path(str(file.locate())) for file in metadata.files(name) or [] if file.suffix != ".pyc"]
    except metadata.PackageNotFoundError:
        return 0
    return sum(file.stat().st_size for file in files if file.exists())
