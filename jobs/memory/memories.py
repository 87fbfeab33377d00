"""`turntide memory apps`: what apps remember of conversations that ended; read it, put it right, let it go."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from jobs.cli import group, with_examples
from jobs.memory.project_asking import save
from jobs.shared import role_api as roles
from jobs.shared.output import (
    TOKEN_VARIABLE,
    AppArgument,
    OutputFormat,
    OutputOption,
    Printer,
    TokenOption,
    UrlOption,
    YesOption,
)
from jobs.shared.role_api import CommandContext, RoleApi, role_command
from models.errors import ConfigurationError

_MOST_SPACES = 10_000
MemoryArgument = Annotated[int, typer.Argument(metavar="ID", min=1, help="Number of the memory, as `list` shows it.")]
UserOption = Annotated[str, typer.Option("--user", help="Space of this user in the app. Default: the app's own space.")]


MemorySearchMode = Literal["keyword", "semantic", "hybrid"]
"""Ways to search memories."""


app = group(
    "Memories of apps, from a running role: list, search, edit, pin, delete. `turntide memory export` saves them."
)


@role_command(app, "turntide memory apps list support", "turntide memory apps list shop/eu --output json", name="list")
def list_memories(
    role: CommandContext,
    app_id: AppArgument,
    *,
    user: UserOption = "",
    shared: Annotated[bool, typer.Option("--shared", help="Include memories that other apps share with it.")] = False,
) -> None:
    """List an app's memories, latest update first."""
    found = role.ask("list_app_memories", app_id=app_id, user_id=user, include_shared=shared or None).body["memories"]
    role.rows(f"memories of {app_id}", found, _row)
    role.output.message(f"{len(found)} memories; `turntide memory apps show {app_id} ID` prints one in full")


@role_command(app, "turntide memory apps show support 7")
def show(role: CommandContext, app_id: AppArgument, memory_id: MemoryArgument, *, user: UserOption = "") -> None:
    """Print one memory in full: its origin, its conflicts, who may read it."""
    role.record(role.ask("get_app_memory", app_id=app_id, memory_id=memory_id, user_id=user).body, _flat)


@role_command(
    app,
    "turntide memory apps edit support 7 --content 'User prefers calls after 2pm.'",
    "turntide memory apps edit support 7 --importance 9 --tag billing --tag calls",
    "turntide memory apps edit support 7 --share-with sales --share-with field",
)
def edit(
    role: CommandContext,
    app_id: AppArgument,
    memory_id: MemoryArgument,
    *,
    content: Annotated[str | None, typer.Option("--content", help="New text.")] = None,
    importance: Annotated[float | None, typer.Option(min=0, max=10, help="New importance, 0-10.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Replaces all tags; repeat for several.")] = None,
    share_with: Annotated[list[str] | None, typer.Option("--share-with", help="All other apps that read it.")] = None,
    share_with_nobody: Annotated[bool, typer.Option("--share-with-nobody", help="Stop sharing.")] = False,
    user: UserOption = "",
) -> None:
    """Edit a memory by hand, or share it with other apps; fields not named do not change."""
    if share_with and share_with_nobody:
        raise typer.BadParameter("--share-with and --share-with-nobody exclude each other")
    sharing = [] if share_with_nobody else share_with or None
    given = {"content": content, "importance": importance, "tags": tag or None, "sharedWith": sharing}
    _edit(role, app_id, memory_id, user, {name: value for name, value in given.items() if value is not None})


@role_command(app, "turntide memory apps pin support 7", "turntide memory apps pin support 7 --off")
def pin(
    role: CommandContext,
    app_id: AppArgument,
    memory_id: MemoryArgument,
    *,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
    user: UserOption = "",
) -> None:
    """Pin a memory: compaction never removes it."""
    _edit(role, app_id, memory_id, user, {"pinned": not off})


@role_command(app, "turntide memory apps delete support 7")
def delete(role: CommandContext, app_id: AppArgument, memory_id: MemoryArgument, *, user: UserOption = "") -> None:
    """Delete one memory; deleting it again is not an error."""
    role.finish(role.ask("delete_app_memory", app_id=app_id, memory_id=memory_id, user_id=user))


@role_command(app, "turntide memory apps purge support", "turntide memory apps purge support --yes --output json")
def purge(role: CommandContext, app_id: AppArgument, *, yes: YesOption = False, user: UserOption = "") -> None:
    """Delete all memories of an app, and conversations waiting to become one. This cannot be undone."""
    _require_sure(app_id, yes=yes)
    role.finish(role.ask("purge_app_memories", app_id=app_id, user_id=user))


@role_command(
    app, "turntide memory apps search support 'order numbers'", "turntide memory apps search support x --mode keyword"
)
def search(
    role: CommandContext,
    app_id: AppArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Text to search for.")],
    *,
    mode: Annotated[MemorySearchMode, typer.Option(help="Match by words, by similarity, or both.")] = "hybrid",
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="Maximum number.")] = 10,
    user: UserOption = "",
) -> None:
    """Search an app's memories, best first."""
    found = role.ask("search_app_memories", app_id=app_id, q=query, mode=mode, limit=limit, user_id=user).body
    role.rows(f"memories of {app_id}", found["memories"], _row)


@role_command(app, "turntide memory apps stats", "turntide memory apps stats support --since-units 260")
def stats(
    role: CommandContext,
    app_id: Annotated[str | None, typer.Argument(metavar="[APP]", help="Id of the app. Default: all apps.")] = None,
    *,
    since_units: Annotated[
        float | None, typer.Option(min=0, help="Units spent at an earlier time: also print the units spent since then.")
    ] = None,
    user: UserOption = "",
) -> None:
    """Print counts and energy of memories; /v1/apps/statistics of the role is the same as a page."""
    if app_id is None:
        role.rows("memories of apps", role.ask("get_statistics", limit=1_000).body["spaces"], _flat)
        return
    role.record(role.ask("get_app_statistics", app_id=app_id, user_id=user, since_units=since_units).body, _flat)


@role_command(app, "turntide memory apps uninstall support", "turntide memory apps uninstall support --purge-memories")
def uninstall(
    role: CommandContext,
    app_id: AppArgument,
    *,
    purge_memories: Annotated[bool, typer.Option("--purge-memories", help="Also delete its memories.")] = False,
    yes: YesOption = False,
    user: UserOption = "",
) -> None:
    """Mark an app as uninstalled. Its memories are kept unless --purge-memories is set."""
    _require_sure(app_id, yes=yes or not purge_memories)
    role.finish(role.ask("uninstall_app", {"purgeMemories": purge_memories}, app_id=app_id, user_id=user))


Injection = Literal["on", "off", "policy"]
"""What prompts of an app begin with."""


@role_command(app, "turntide memory apps inject support on")
def inject(
    role: CommandContext,
    app_id: AppArgument,
    switch: Annotated[Injection, typer.Argument(help="on, off, or policy (the policy's `apps.inject`).")],
) -> None:
    """Begin all prompts of an app with its memories, or only prompts that ask for them."""
    wanted = {"on": True, "off": False, "policy": None}[switch]
    role.finish(role.ask("set_app_injection", {"inject": wanted}, app_id=app_id))


def _require_sure(app_id: str, *, yes: bool) -> None:
    if not yes:
        typer.confirm(f"Delete all memories of {app_id}?", abort=True, err=True)


def _edit(role: CommandContext, app_id: str, memory_id: int, user: str, body: Mapping[str, Any]) -> None:
    done = role.ask("edit_app_memory", body, app_id=app_id, memory_id=memory_id, user_id=user)
    memory = done.body.get("memory")
    role.finish(done._replace(body=_flat(memory)) if memory and not role.whole else done)


def _row(memory: Mapping[str, Any]) -> dict[str, Any]:
    """A memory in a row that can be read."""
    marks = [("pinned", memory["pinned"]), ("shared", memory["sharedWith"]), ("conflict", memory["conflictsWith"])]
    score = {"score": round(memory["score"], 3)} if "score" in memory else {}
    return {
        "id": memory["id"],
        **score,
        "updated": memory["updatedAt"][:10],
        "importance": memory["metadata"]["importance"],
        "marks": " ".join(name for name, is_so in marks if is_so),
        "content": memory["content"],
    }


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of inner objects beside the others."""
    inner = {key: value for each in fields.values() if isinstance(each, Mapping) for key, value in each.items()}
    return {key: value for key, value in fields.items() if not isinstance(value, Mapping)} | inner


@with_examples(
    "turntide memory export support -o support.json",
    "turntide memory export --all -o memories.json",
    "turntide memory export support | jq -r .memories[].content",
)
def export(
    app_id: Annotated[str | None, typer.Argument(metavar="[APP]", help="Id of the app.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Export all apps that the token reads.")] = False,
    to: Annotated[Path | None, typer.Option("-o", "--file", help="File to write. Default: standard output.")] = None,
    user: Annotated[str, typer.Option("--user", help="Space of this user in the app. Default: the app's own.")] = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Save memories of apps as JSON: their texts, importance, tags, sources and conflicts."""
    if every == (app_id is not None):
        raise ConfigurationError("give either an app, or --all")
    with roles.role_api(url, token) as role:
        exported = _all(role) if app_id is None else _one(role, app_id, user)
    text = msgspec.json.format(msgspec.json.encode(exported), indent=2).decode() + "\n"
    if to is None:
        sys.stdout.write(text)
        return
    save(to, text)
    spaces = exported.get("spaces", [exported])
    memories = sum(len(space["memories"]) for space in spaces)
    Printer(output).record({"file": str(to), "spaces": len(spaces), "memories": memories, "bytes": len(text.encode())})


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
