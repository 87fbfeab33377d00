"""`turntide project`: what is remembered of a project; read it, put it right, travel in time (seed 004)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from jobs.cli import examples
from jobs.memory.project_asking import (
    AppArgument,
    ConversationOption,
    MemoryArgument,
    OutputOption,
    ProjectArgument,
    Target,
    flat,
    utc_time,
)
from jobs.memory.project_commands import app as deeds
from jobs.memory.project_graph import GRAPH_EXAMPLES, RELATE_EXAMPLES, graph, relate
from jobs.memory.project_report import REPORT_EXAMPLES, report
from jobs.memory.project_saving import EXPORT_EXAMPLES, IMPORT_EXAMPLES, bring_back, export
from jobs.shared.output import Output, OutputFormat
from jobs.shared.role_api import TOKEN_VARIABLE, TokenOption, UrlOption, path_part
from models.events.project_items import MemoryType

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Memory of projects, from a running role: memories, relationships, episodes, time travel, files.",
)
app.command(epilog=examples(*GRAPH_EXAMPLES))(graph)
app.command(epilog=examples(*RELATE_EXAMPLES))(relate)
app.command(epilog=examples(*REPORT_EXAMPLES))(report)
app.command(epilog=examples(*EXPORT_EXAMPLES))(export)
app.registered_commands += deeds.registered_commands
app.command("import", epilog=examples(*IMPORT_EXAMPLES))(bring_back)


@app.command(epilog=examples("turntide project show shop web", "turntide project show shop web --output json"))
def show(
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print how much is remembered of a project, and how much may be."""
    found = Target(app_id, project, url, token).ask("GET", "standing").body
    Output(output).record(found if output is OutputFormat.JSON else flat(found))


@app.command(
    epilog=examples(
        "turntide project memories shop web",
        "turntide project memories shop web --type decision --archived",
        "turntide project memories shop web --search 'database decision'",
    )
)
def memories(
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    kind: Annotated[MemoryType | None, typer.Option("--type", help="Only of this type.")] = None,
    tag: Annotated[str, typer.Option("--tag", help="Only with this tag.")] = "",
    search: Annotated[str, typer.Option("--search", help="What is looked for, best first.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Also what was put away.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many at most.")] = 50,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List a project's memories, the newest first, or search them together with episodes and chunks."""
    if search:
        types = [] if kind is None else [kind.value]
        filters = {"memory_types": types, "tags": [tag] if tag else [], "include_archived": archived}
        body = {"query": search, "top_k": min(limit, 100), "filters": filters | {"include_chunks": not types}}
        found = Target(app_id, project, url, token).ask("POST", "search", body=body).body["results"]
        rows = [{name: each[name] for name in ("id", "kind", "score", "text")} for each in found]
        Output(output).rows(f"found in {project}", found if output is OutputFormat.JSON else rows)
        return
    params = {"memory_type": kind and kind.value, "tag": tag, "include_archived": archived or None, "limit": limit}
    page = Target(app_id, project, url, token).ask("GET", "memories", params=params).body
    print_memories(f"memories of {project}", page["memories"], output)
    if page["next"]:
        Output(output).message(f"there are more: --limit, or `turntide project export {app_id} {project} DIR`")


@app.command(epilog=examples("turntide project memory shop web mjuohs00-9c1d22ab"))
def memory(
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print all of one memory: where it was said, what was known before, what leads to it."""
    found = Target(app_id, project, url, token).ask("GET", f"memories/{path_part(memory_id)}").body
    Output(output).record(found if output is OutputFormat.JSON else flat(found))


@app.command(
    epilog=examples(
        "turntide project at shop web 2026-01-03",
        "turntide project at shop web 2026-01-03 --known-at 2026-01-05T12:00:00Z",
    )
)
def at(
    app_id: AppArgument,
    project: ProjectArgument,
    when: Annotated[str, typer.Argument(metavar="TIME", help="A day or an RFC 3339 time, UTC.")],
    *,
    known_at: Annotated[str, typer.Option("--known-at", help="By what was known then; none: as is known now.")] = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Travel in time: what held at a time, and if asked by what was known at another."""
    params = {"at": utc_time(when), "known_at": utc_time(known_at) if known_at else None}
    found = Target(app_id, project, url, token).ask("GET", "valid_at", params=params).body["memories"]
    print_memories(f"{project} at {when}", found, output)


@app.command(epilog=examples("turntide project pending shop web"))
def pending(
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List what was said and is not sure enough to be a memory, the surest first."""
    found = Target(app_id, project, url, token).ask("GET", "pending").body["pending"]
    names = ("id", "type", "confidence", "doubts", "content")
    rows = found if output is OutputFormat.JSON else [{name: each[name] for name in names} for each in found]
    Output(output).rows(f"pending facts of {project}", rows)


@app.command(epilog=examples("turntide project conversations shop web"))
def conversations(
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List a project's conversations, the latest first."""
    found = Target(app_id, project, url, token).ask("GET", "conversations").body["conversations"]
    names = ("id", "status", "total_turns", "chunks", "started_at", "last_at", "summary")
    rows = found if output is OutputFormat.JSON else [{name: each[name] for name in names} for each in found]
    Output(output).rows(f"conversations of {project}", rows)


@app.command(
    epilog=examples("turntide project arc shop web", "turntide project arc shop web --conversation planning-1")
)
def arc(
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    conversation: ConversationOption = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print the narrative arc: beginning, middle, end, and the key moments."""
    params = {"conversation_id": conversation}
    found = Target(app_id, project, url, token).ask("GET", "arc", params=params).body
    if output is OutputFormat.JSON:
        Output(output).record(found)
        return
    moments = {each["id"] for each in found["key_moments"]}
    rows = [
        {
            "part": part,
            "kind": each["kind"],
            "turns": f"{each['first_turn']}-{each['last_turn']}",
            "significance": round(each["significance"], 2),
            "key": "*" if each["id"] in moments else "",
            "title": each["title"],
        }
        for part in ("beginning", "middle", "end")
        for each in found[part]
    ]
    Output(output).rows(f"narrative arc of {conversation or project}", rows)


def print_memories(title: str, found: Iterable[Mapping[str, Any]], output: OutputFormat) -> None:
    """A row for each that can be read; as JSON all of it."""
    rows = found if output is OutputFormat.JSON else map(_row, found)
    Output(output).rows(title, rows)


def _row(memory: Mapping[str, Any]) -> dict[str, Any]:
    until = memory["valid_until"]
    return {
        "id": memory["id"],
        "type": memory["type"],
        "from": memory["valid_from"][:10],
        "until": until[:10] if until else "",
        "importance": round(memory["importance"], 2),
        "marks": "archived" if memory["archived"] else "",
        "content": memory["content"],
    }
