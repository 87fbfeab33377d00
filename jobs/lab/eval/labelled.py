"""Labelled sets: JSON lines, each with an id of its own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from models.errors import ConfigurationError


class Labelled(Protocol):
    """What a line holds."""

    @property
    def id(self) -> str:
        """Names the line."""
        ...


_Line = TypeVar("_Line", bound=Labelled)


def read_labelled(kind: type[_Line], file: Path | None, own_set: str, what: str) -> list[_Line]:
    """Read a labelled set, a JSON object on each line; blank lines are skipped.

    Args:
        kind: Type of a line.
        file: None: the set that Turntide brings.
        own_set: Name of that one, beside this module.
        what: What lines are called in errors.

    Raises:
        ConfigurationError: The file cannot be read, a line is of another type, or an id comes twice.
    """
    try:
        raw = resources.files(__package__).joinpath(own_set).read_bytes() if file is None else file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read the labelled {what}: {error}") from error
    decoder = msgspec.json.Decoder(kind)
    lines: dict[str, _Line] = {}
    for number, text in enumerate(raw.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"labelled {what}, line {number}: {error}") from error
        if line.id in lines:
            raise ConfigurationError(f"labelled {what}, line {number}: the id {line.id} comes twice")
        lines[line.id] = line
    return list(lines.values())
