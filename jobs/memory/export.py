"""`turntide memory export`: memories of an app, or of all apps, into a JSON file."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from jobs.cli import examples
from jobs.shared import role_api as roles
from jobs.shared.options import TOKEN_VARIABLE, OutputOption, TokenOption, UrlOption
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.role_api import RoleApi
from models.errors import ConfigurationError

_MOST_SPACES = 10_000


def export(
    app_id: Annotated[str | None, typer.Argument(metavar="[APP]", help="Id of the app.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every app that the token reads.")] = False,
    to: Annotated[Path | None, typer.Option("-o", "--file", help="Where to; none: standard output.")] = None,
    user: Annotated[str, typer.Option("--user", help="The space of this user in the app; none: the app's own.")] = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Save memories of apps as JSON: their texts, importance, tags, sources and conflicts."""
    if every == (app_id is not None):
        raise ConfigurationError("name an app, or say --all")
    with roles.role_api(url, token) as role:
        exported = _all(role) if app_id is None else _one(role, app_id, user)
    text = msgspec.json.format(msgspec.json.encode(exported), indent=2) + b"\n"
    if to is None:
        sys.stdout.write(text.decode())
        return
    _save(to, text)
    spaces = exported.get("spaces", [exported])
    memories = sum(len(space["memories"]) for space in spaces)
    Printer(output).record({"file": str(to), "spaces": len(spaces), "memories": memories, "bytes": len(text)})


export.epilog = examples(  # type: ignore[attr-defined] # read by jobs.cli
    "turntide memory export support -o support.json",
    "turntide memory export --all -o memories.json",
    "turntide memory export support | jq -r .memories[].content",
)


def _one(role: RoleApi, app_id: str, user_id: str) -> dict[str, Any]:
    return role.ask("export_app_memories", app_id=app_id, user_id=user_id).body


def _all(role: RoleApi) -> dict[str, Any]:
    """Every space, each as it is exported alone.

    Raises:
        ConfigurationError: There are more than can be listed: half an export is none.
    """
    found = role.ask("list_apps", limit=_MOST_SPACES).body
    if found["more"]:
        raise ConfigurationError(
            f"there are more than {_MOST_SPACES} apps with memories: export them one by one, or "
            "`turntide query 'FROM app_memories'`"
        )
    spaces = [_one(role, space["appId"], space["userId"]) for space in found["spaces"]]
    return {
        "format": "turntide.app-memories-of-all",
        "version": 1,
        "exportedAt": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "spaces": spaces,
    }


def _save(to: Path, text: bytes) -> None:
    """Whole or not at all, and readable by its owner alone: it holds what people said."""
    beside = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        beside.replace(to)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ConfigurationError(f"cannot write {to}: {error.strerror}. Name another file with -o") from error
