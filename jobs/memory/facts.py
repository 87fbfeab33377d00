"""`turntide memory facts`: what holds of a user; read it, write it, put it right, pin it, let it go."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobs.cli import group
from jobs.shared.role_api import CommandContext, columns, role_command
from models.events.user import FactCategory, MemoryMode

app = group("Facts of users, from a running role: list, set, pin, delete. Facts and audit record who changed them.")
UserArgument = Annotated[str, typer.Argument(metavar="USER", help="Id of the user.")]
CategoryArgument = Annotated[FactCategory, typer.Argument(metavar="CATEGORY", help="Kind of the fact.")]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Key of the fact, in snake case.")]
AppOption = Annotated[str | None, typer.Option("--app", help="The user's app. Default: by the token, else `default`.")]


@role_command(
    app, "turntide memory facts list u-1", "turntide memory facts list u-1 --app shop --past --output json", name="list"
)
def list_facts(
    role: CommandContext,
    user_id: UserArgument,
    *,
    app_id: AppOption = None,
    past: Annotated[bool, typer.Option("--past", help="Include past values.")] = False,
) -> None:
    """List facts of a user: active ones first, the most important first."""
    found = role.ask("list_user_facts", user_id=user_id, app_id=app_id, include_past=past or None).body["items"]
    role.rows(f"facts of {user_id}", found, columns(*_SHOWN))


@role_command(
    app,
    "turntide memory facts set u-1 identity name Alex",
    "turntide memory facts set u-1 identity name --pin",
    name="set",
)
def set_fact(
    role: CommandContext,
    user_id: UserArgument,
    category: CategoryArgument,
    key: KeyArgument,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="New value. Default: unchanged.")] = None,
    *,
    pin: Annotated[bool | None, typer.Option("--pin/--no-pin", help="Protect it from later statements.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", min=0, max=1, help="Importance, 0-1.")] = None,
    app_id: AppOption = None,
) -> None:
    """Add, correct or pin a fact. Later statements of the user replace it unless it is pinned."""
    body = {"value": value, "importance": importance, "pinned": pin}
    given = {name: each for name, each in body.items() if each is not None}
    fact = {"user_id": user_id, "category": category.value, "key": key, "app_id": app_id}
    role.finish(role.ask("correct_user_fact", given, **fact), _flat)


@role_command(app, "turntide memory facts delete u-1 identity name", name="delete")
def delete_fact(
    role: CommandContext,
    user_id: UserArgument,
    category: CategoryArgument,
    key: KeyArgument,
    *,
    app_id: AppOption = None,
) -> None:
    """End a fact, pinned or not; its value stays in its history until the user is erased."""
    role.finish(role.ask("delete_user_fact", user_id=user_id, category=category.value, key=key, app_id=app_id))


@role_command(
    app, "turntide memory facts mode u-1 off", "turntide memory facts mode u-1 active --app shop", name="mode"
)
def set_mode(
    role: CommandContext,
    user_id: UserArgument,
    mode: Annotated[MemoryMode, typer.Argument(metavar="MODE", help="active, read_only (learns nothing new) or off.")],
    *,
    app_id: AppOption = None,
) -> None:
    """Set the mode of a user's memory: it learns and is read, is only read, or neither. Existing memory is kept."""
    role.finish(role.ask("set_memory_mode", {"mode": mode.value}, user_id=user_id, app_id=app_id))


_SHOWN = ("category", "key", "value", "active", "pinned", "confidence", "importance", "extracted_by", "by")


def _flat(body: Any) -> dict[str, Any]:
    fact = body.get("fact") or {}
    return {name: fact[name] for name in _SHOWN if name in fact} or dict(body)
