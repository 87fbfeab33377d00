"""A policy file with other thresholds and the next version; everything else as it was."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from models.errors import ConfigurationError
from models.policy import ModePolicy, load_policy


def next_version(version: str) -> str:
    """The version after this one.

    >>> next_version("default-1"), next_version("night shift"), next_version("v09")
    ('default-2', 'night shift-2', 'v10')
    """
    found = re.fullmatch(r"(.*?)(\d+)", version, re.DOTALL)
    if found is None:
        return f"{version}-2"
    return found[1] + str(int(found[2]) + 1).zfill(len(found[2]))


def written(present: Path | None, version: str, modes: ModePolicy, *, said: str) -> bytes:
    """The new file as TOML: what the present one names, with the version and the thresholds.

    Args:
        present: TOML or JSON; None: the defaults, of which nothing is written out.
        version: The new one.
        modes: The new ones, written out in full.
        said: Where they come from; stands above everything, a line.
    """
    fields = {"version": "", **_fields(present), "modes": msgspec.to_builtins(modes)} | {"version": version}
    content = f"# {said}\n{tomli_w.dumps(fields)}".encode()
    load_policy(content, "toml")
    return content


def require_new(file: Path) -> None:
    """Say before hours of folding that a file is there already.

    Raises:
        ConfigurationError: It is.
    """
    if file.exists():
        raise ConfigurationError(f"{file} is there already: a policy in use is never overwritten, name a new one")


def write_new(file: Path, content: bytes) -> None:
    """Write a file that is not there yet.

    Raises:
        ConfigurationError: It is there, or cannot be written.
    """
    require_new(file)
    try:
        with file.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise ConfigurationError(f"cannot write {file}: {error.strerror}") from error


def _fields(present: Path | None) -> dict[str, Any]:
    if present is None:
        return {}
    data = present.read_bytes()
    fields: dict[str, Any] = msgspec.json.decode(data) if present.suffix == ".json" else tomllib.loads(data.decode())
    # TOML has no null: a field of JSON that says null says what its default says.
    return _without_nulls(fields)


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }
