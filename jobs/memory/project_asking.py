"""Arguments and forms of the commands of `turntide memory project`."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.cli import group
from jobs.shared.output import AppArgument, ProjectArgument
from jobs.shared.role_api import role_command
from models.errors import ConfigurationError
from streams.embedded.project_folder import replace_file

app = group("Memory of projects, from a running role: memories, relationships, episodes, time travel, files.")
project_command = partial(role_command, app, about={"app_id": AppArgument, "project_id": ProjectArgument})
"""Declares a command about one project of an app."""
MemoryArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the memory, as `memories` shows it.")]
ConversationOption = Annotated[str, typer.Option("--conversation", help="Filter by conversation. Default: all.")]


def flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of inner objects beside the others, each under the name of where it stands."""
    shown: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            shown |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            shown[name] = value
    return shown


def save(to: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner alone.

    Raises:
        ConfigurationError: It cannot be written.
    """
    try:
        replace_file(to, text)
    except OSError as error:
        raise ConfigurationError(f"cannot write {to}: {error.strerror}. Give another file with -o") from error


def utc_time(given: str) -> str | None:
    """A time as the role takes it; a day begins at midnight UTC.

    >>> utc_time("2026-01-03"), utc_time("")
    ('2026-01-03T00:00:00Z', None)
    """
    if not given:
        return None
    return given if "T" in given else f"{given}T00:00:00Z"
