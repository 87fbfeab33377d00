"""`turntide memories`: what apps remember of conversations that ended; read it, put it right, let it go (seed 003)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobs.cli import examples
from jobs.shared.output import Output, OutputFormat
from jobs.shared.role_api import TOKEN_VARIABLE, RoleAnswer, TokenOption, UrlOption, path_part, role_api

_EXIT_PENDING = 1

AppArgument = Annotated[str, typer.Argument(metavar="APP", help="Id of the app.")]
MemoryArgument = Annotated[int, typer.Argument(metavar="ID", min=1, help="Number of the memory, as `list` shows it.")]
UserOption = Annotated[str, typer.Option("--user", help="The space of this user in the app; none: the app's own.")]
OutputOption = Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask whether you are sure.")]


class Mode(StrEnum):
    """How memories are searched."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Memories of apps, from a running role: list, search, edit, pin, delete. `turntide export` saves them.",
)


@app.command("list", epilog=examples("turntide memories list support", "turntide memories list shop/eu --output json"))
def list_memories(
    app_id: AppArgument,
    *,
    user: UserOption = "",
    shared: Annotated[bool, typer.Option("--shared", help="Also those that other apps share with it.")] = False,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List an app's memories, the latest updated first."""
    params = {"user_id": user, "include_shared": "true" if shared else None}
    found = _asked("GET", f"{_place(app_id)}/memories", url, token, params=params).body["memories"]
    _print_memories(f"memories of {app_id}", found, output)
    Output(output).message(f"{len(found)} memories; `turntide memories show {app_id} ID` has all of one")


@app.command(epilog=examples("turntide memories show support 7"))
def show(
    app_id: AppArgument,
    memory_id: MemoryArgument,
    *,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print all of one memory: where it comes from, what it conflicts with, who may read it."""
    found = _asked("GET", _memory(app_id, memory_id), url, token, params={"user_id": user}).body
    Output(output).record(_flat(found) if output is not OutputFormat.JSON else found)


@app.command(
    epilog=examples(
        "turntide memories edit support 7 --content 'User prefers calls after 2pm.'",
        "turntide memories edit support 7 --importance 9 --tag billing --tag calls",
        "turntide memories edit support 7 --share-with sales --share-with field",
    )
)
def edit(
    app_id: AppArgument,
    memory_id: MemoryArgument,
    *,
    content: Annotated[str | None, typer.Option("--content", help="The new text.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", min=0, max=10, help="0-10.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="All its tags; once for each.")] = None,
    share_with: Annotated[list[str] | None, typer.Option("--share-with", help="All apps that may read it too.")] = None,
    share_with_nobody: Annotated[bool, typer.Option("--share-with-nobody", help="Take sharing back.")] = False,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Put a memory right by hand, or share it with other apps; what is not named stays."""
    if share_with and share_with_nobody:
        raise typer.BadParameter("--share-with and --share-with-nobody contradict each other")
    sharing = [] if share_with_nobody else share_with or None
    given = {"content": content, "importance": importance, "tags": tag or None, "sharedWith": sharing}
    body = {name: value for name, value in given.items() if value is not None}
    _finish_edit(_asked("PUT", _memory(app_id, memory_id), url, token, params={"user_id": user}, body=body), output)


@app.command(epilog=examples("turntide memories pin support 7", "turntide memories pin support 7 --off"))
def pin(
    app_id: AppArgument,
    memory_id: MemoryArgument,
    *,
    off: Annotated[bool, typer.Option("--off", help="Let it go again.")] = False,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Pin a memory: it is never compacted away."""
    body = {"pinned": not off}
    _finish_edit(_asked("PUT", _memory(app_id, memory_id), url, token, params={"user_id": user}, body=body), output)


@app.command(epilog=examples("turntide memories delete support 7"))
def delete(
    app_id: AppArgument,
    memory_id: MemoryArgument,
    *,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete one memory; one that is gone already is no error."""
    _finish(_asked("DELETE", _memory(app_id, memory_id), url, token, params={"user_id": user}), output)


@app.command(epilog=examples("turntide memories purge support", "turntide memories purge support --yes --output json"))
def purge(
    app_id: AppArgument,
    *,
    yes: YesOption = False,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete all memories of an app, and conversations that wait to become one. There is no way back."""
    if not yes:
        typer.confirm(f"Delete all memories of {app_id}?", abort=True, err=True)
    _finish(_asked("DELETE", f"{_place(app_id)}/memories", url, token, params={"user_id": user}), output)


@app.command(
    epilog=examples(
        "turntide memories search support 'order numbers'", "turntide memories search support x --mode keyword"
    )
)
def search(
    app_id: AppArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is looked for.")],
    *,
    mode: Annotated[Mode, typer.Option("--mode", help="By words, by likeness, or both.")] = Mode.HYBRID,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many at most.")] = 10,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Find an app's memories that speak of something, best first."""
    params = {"q": query, "mode": mode.value, "limit": limit, "user_id": user}
    found = _asked("GET", f"{_place(app_id)}/memories/search", url, token, params=params).body["memories"]
    _print_memories(f"memories of {app_id}", found, output)


@app.command(epilog=examples("turntide memories stats", "turntide memories stats support --since-units 260"))
def stats(
    app_id: Annotated[str | None, typer.Argument(metavar="[APP]", help="Id of the app; none: all apps.")] = None,
    *,
    since_units: Annotated[
        float | None, typer.Option("--since-units", min=0, help="Also tell the energy spent since this much.")
    ] = None,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print counts and energy of memories; /apps/statistics of the role is the same as a page."""
    if app_id is None:
        found = _asked("GET", "/apps/statistics", url, token, params={"limit": 1_000}).body
        rows = found["spaces"] if output is OutputFormat.JSON else [_flat(each) for each in found["spaces"]]
        Output(output).rows("memories of apps", rows)
        return
    params = {"user_id": user, "since_units": since_units}
    one = _asked("GET", f"{_place(app_id)}/memories/stats", url, token, params=params).body
    Output(output).record(_flat(one) if output is not OutputFormat.JSON else one)


@app.command(
    epilog=examples("turntide memories uninstall support", "turntide memories uninstall support --purge-memories")
)
def uninstall(
    app_id: AppArgument,
    *,
    purge_memories: Annotated[bool, typer.Option("--purge-memories", help="Its memories go too.")] = False,
    yes: YesOption = False,
    user: UserOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Note that an app is gone. Its memories stay, unless they are to be purged with it."""
    if purge_memories and not yes:
        typer.confirm(f"Delete all memories of {app_id}?", abort=True, err=True)
    body = {"purgeMemories": purge_memories}
    _finish(_asked("POST", f"{_place(app_id)}/uninstall", url, token, params={"user_id": user}, body=body), output)


def _place(app_id: str) -> str:
    return f"/apps/{path_part(app_id)}"


def _memory(app_id: str, memory_id: int) -> str:
    return f"{_place(app_id)}/memories/{memory_id}"


def _asked(
    method: str,
    path: str,
    url: str | None,
    token: str,
    *,
    params: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
) -> RoleAnswer:
    with role_api(url, token) as role:
        return role.ask(method, path, params=params, body=body)


def _finish_edit(answer: RoleAnswer, output: OutputFormat) -> None:
    memory = answer.body.get("memory")
    _finish(answer._replace(body=_flat(memory)) if memory and output is not OutputFormat.JSON else answer, output)


def _finish(answer: RoleAnswer, output: OutputFormat) -> None:
    """Print what came of a command; exit code 1 if that is not known yet."""
    Output(output).record(answer.body)
    if answer.pending:
        raise typer.Exit(_EXIT_PENDING)


def _print_memories(title: str, memories: Iterable[Mapping[str, Any]], output: OutputFormat) -> None:
    rows = memories if output is OutputFormat.JSON else map(_row, memories)
    Output(output).rows(title, rows)


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
