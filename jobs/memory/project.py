"""`turntide memory project`: what is remembered of a project; read it, put it right, travel in time."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from jobs.memory import project_saving
from jobs.memory.project_asking import ConversationOption, MemoryArgument, app, flat, project_command, utc_time
from jobs.shared.role_api import CommandContext, columns
from models.events.project_items import MemoryType

__all__ = ["app", "project_saving"]  # the saving commands stand on `app` too


@project_command("turntide memory project show shop web", "turntide memory project show shop web --output json")
def show(role: CommandContext) -> None:
    """Print the size of a project's memory, and its limits."""
    role.record(role.ask("get_project_standing").body, flat)


@project_command(
    "turntide memory project memories shop web",
    "turntide memory project memories shop web --type decision --archived",
    "turntide memory project memories shop web --search 'database decision'",
)
def memories(
    role: CommandContext,
    *,
    kind: Annotated[MemoryType | None, typer.Option("--type", help="Filter by type.")] = None,
    tag: Annotated[str, typer.Option("--tag", help="Filter by tag.")] = "",
    search: Annotated[str, typer.Option("--search", help="Text to search for; the best match is first.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Include archived memories.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Maximum number.")] = 50,
) -> None:
    """List a project's memories, newest first, or search them together with episodes and chunks."""
    if search:
        types = [] if kind is None else [kind.value]
        filters = {"memory_types": types, "tags": [tag] if tag else [], "include_archived": archived}
        body = {"query": search, "top_k": min(limit, 100), "filters": filters | {"include_chunks": not types}}
        found = role.ask("search_project", body).body["results"]
        role.rows(f"found in {role.project}", found, columns("id", "kind", "score", "text"))
        return
    narrowed = {"memory_type": kind, "tag": tag, "include_archived": archived or None, "limit": limit}
    page = role.ask("list_project_memories", **narrowed).body
    role.rows(f"memories of {role.project}", page["memories"], _row)
    if page["next"]:
        role.output.message(
            f"more exist: use --limit, or `turntide memory project export {role.named['app_id']} {role.project} DIR`"
        )


@project_command("turntide memory project memory shop web mjuohs00-9c1d22ab")
def memory(role: CommandContext, memory_id: MemoryArgument) -> None:
    """Print one memory in full: its source, its earlier versions, its relationships."""
    role.record(role.ask("get_project_memory", memory_id=memory_id).body, flat)


@project_command(
    "turntide memory project at shop web 2026-01-03",
    "turntide memory project at shop web 2026-01-03 --known-at 2026-01-05T12:00:00Z",
)
def at(
    role: CommandContext,
    when: Annotated[str, typer.Argument(metavar="TIME", help="A day or an RFC 3339 time, UTC.")],
    *,
    known_at: Annotated[str, typer.Option("--known-at", help="As known at this time. Default: now.")] = "",
) -> None:
    """Print the memories that were valid at a time, optionally as known at another time."""
    times = {"at": utc_time(when), "known_at": utc_time(known_at)}
    found = role.ask("list_valid_memories", **times).body
    role.rows(f"{role.project} at {when}", found["memories"], _row)


@project_command("turntide memory project pending shop web")
def pending(role: CommandContext) -> None:
    """List pending facts (too uncertain to be memories), most certain first."""
    found = role.ask("list_pending_facts").body["pending"]
    role.rows(f"pending facts of {role.project}", found, columns("id", "type", "confidence", "doubts", "content"))


@project_command("turntide memory project conversations shop web")
def conversations(role: CommandContext) -> None:
    """List a project's conversations, latest first."""
    found = role.ask("list_conversations").body["conversations"]
    names = ("id", "status", "total_turns", "chunks", "started_at", "last_at", "summary")
    role.rows(f"conversations of {role.project}", found, columns(*names))


@project_command(
    "turntide memory project arc shop web", "turntide memory project arc shop web --conversation planning-1"
)
def arc(role: CommandContext, *, conversation: ConversationOption = "") -> None:
    """Print the narrative arc: beginning, middle, end, and the key moments."""
    found = role.ask("get_narrative_arc", conversation_id=conversation).body
    if role.whole:
        role.output.record(found)
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
    role.output.rows(f"narrative arc of {conversation or role.project}", rows)


# --- putting it right

Content = Annotated[str, typer.Argument(metavar="TEXT", help="Text of the memory.")]


PendingDecision = Literal["promote", "discard"]
"""Decisions on a pending fact."""


@project_command("turntide memory project add shop web 'We use PostgreSQL.' --type decision --subject database")
def add(
    role: CommandContext,
    content: Content,
    *,
    kind: Annotated[MemoryType, typer.Option("--type", help="Type of the memory.")] = MemoryType.FACT,
    subject: Annotated[str, typer.Option("--subject", help="Subject of a decision; the next one replaces it.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag; repeat for several.")] = None,
    importance: Annotated[float | None, typer.Option(min=0, max=1, help="0-1. Default: that of the type.")] = None,
    valid_from: Annotated[str, typer.Option("--valid-from", help="Start of its validity. Default: now.")] = "",
    valid_until: Annotated[str, typer.Option("--valid-until", help="End of its validity. Default: no end.")] = "",
) -> None:
    """Add a memory. If the memory exists already, it is strengthened instead."""
    body = {"content": content, "type": kind.value, "subject": subject, "tags": tag or [], "importance": importance}
    body |= {"valid_from": utc_time(valid_from), "valid_until": utc_time(valid_until)}
    role.finish(role.ask("add_project_memory", body), flat)


@project_command(
    "turntide memory project edit shop web mjuohs00-9c1d22ab --content 'We use PostgreSQL 17.'",
    "turntide memory project edit shop web mjuohs00-9c1d22ab --importance 0.9 --tag storage",
)
def edit(
    role: CommandContext,
    memory_id: MemoryArgument,
    *,
    content: Annotated[str | None, typer.Option("--content", help="New text.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="New category.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", min=0, max=1, help="New importance, 0-1.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Replaces all tags; repeat for several.")] = None,
    valid_from: Annotated[str, typer.Option("--valid-from", help="New start of its validity.")] = "",
) -> None:
    """Edit a memory. Omitted fields stay unchanged; the history keeps the earlier version."""
    given = {"content": content, "category": category, "importance": importance, "tags": tag or None}
    _edit(role, memory_id, **given, valid_from=utc_time(valid_from))


@project_command("turntide memory project expire shop web mjuohs00-9c1d22ab --at 2026-02-01")
def expire(
    role: CommandContext,
    memory_id: MemoryArgument,
    *,
    when: Annotated[str, typer.Option("--at", help="New end of its validity.")],
) -> None:
    """End a memory's validity; `turntide memory project at` still returns it for earlier times."""
    _edit(role, memory_id, valid_until=utc_time(when))


@project_command("turntide memory project archive shop web mjuohs00-9c1d22ab")
def archive(role: CommandContext, memory_id: MemoryArgument) -> None:
    """Archive a memory: searches leave it out unless they ask for archived ones."""
    _edit(role, memory_id, archived=True)


@project_command("turntide memory project restore shop web mjuohs00-9c1d22ab")
def restore(role: CommandContext, memory_id: MemoryArgument) -> None:
    """Restore an archived memory."""
    _edit(role, memory_id, archived=False)


@project_command(
    "turntide memory project promote shop web mjuohs00-5b6a7c8d",
    "turntide memory project promote shop web ID --as discard",
)
def promote(
    role: CommandContext,
    pending_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the pending fact, as `pending` shows it.")],
    *,
    decision: Annotated[PendingDecision, typer.Option("--as", help="Promote or discard it.")] = "promote",
) -> None:
    """Promote a pending fact to a memory, or discard it."""
    role.finish(role.ask("decide_pending_fact", pending_id=pending_id, decision=decision), flat)


def _edit(role: CommandContext, memory_id: str, **given: Any) -> None:
    body = {name: value for name, value in given.items() if value is not None}
    role.finish(role.ask("edit_project_memory", body, memory_id=memory_id), flat)


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


@project_command(
    "turntide memory project graph shop web",
    "turntide memory project graph shop web --of mjuohs00-9c1d22ab --depth 2",
    "turntide memory project graph shop web --of mjuohs00-9c1d22ab --to mjuohs00-1f0e77cd",
    "turntide memory project graph shop web --of mjuohs00-9c1d22ab --dependents",
)
def graph(
    role: CommandContext,
    *,
    of: Annotated[str, typer.Option("--of", metavar="ID", help="Only relationships near this memory.")] = "",
    depth: Annotated[int, typer.Option("--depth", min=1, max=8, help="Maximum distance in relationships.")] = 1,
    to: Annotated[str, typer.Option("--to", metavar="ID", help="Print the path from --of to this memory.")] = "",
    dependents: Annotated[bool, typer.Option("--dependents", help="Print the memories that depend on --of.")] = False,
) -> None:
    """Print relationships: all, those near a memory, a path between two, or the dependants of one."""
    if (to or dependents) and not of:
        raise typer.BadParameter("--to and --dependents need --of ID")
    if to:
        found = role.ask("find_path", source_id=of, target_id=to).body
        role.output.rows(f"from {of} to {to}", found["edges"])
        if not found["found"]:
            role.output.message("no path")
        return
    if of:
        near = {} if dependents else {"depth": depth}
        found = role.ask("list_dependents" if dependents else "list_neighbours", memory_id=of, **near).body
        role.output.rows(f"related to {of}", found["related"])
        return
    whole = role.ask("get_graph").body
    if role.whole:
        role.output.record(whole)
        return
    contents = {node["id"]: node["content"] for node in whole["nodes"]}
    rows = [
        {
            "from": contents[each["source_id"]],
            "relation": each["type"],
            "to": contents[each["target_id"]],
            "strength": each["strength"],
        }
        for each in whole["edges"]
    ]
    role.output.rows(f"relationships of {role.project}", rows)


@project_command(
    "turntide memory project relate shop web mjuohs00-9c1d22ab depends_on mjuohs00-1f0e77cd --strength 0.8",
    "turntide memory project relate shop web mjuohs00-9c1d22ab depends_on mjuohs00-1f0e77cd --off",
)
def relate(
    role: CommandContext,
    source: Annotated[str, typer.Argument(metavar="ID", help="Memory at the start of the relationship.")],
    relation: Annotated[str, typer.Argument(help="depends_on, related_to, contradicts, supersedes, or another type.")],
    target: Annotated[str, typer.Argument(metavar="OTHER", help="Memory at the end of the relationship.")],
    *,
    strength: Annotated[float, typer.Option("--strength", min=0, max=1, help="Strength, 0-1.")] = 1.0,
    off: Annotated[bool, typer.Option("--off", help="Remove the relationship.")] = False,
) -> None:
    """Relate one memory to another, or remove the relationship."""
    edge = {"source_id": source, "target_id": target, "relation": relation}
    if off:
        role.finish(role.ask("delete_relationship", **edge), flat)
    else:
        role.finish(role.ask("set_relationship", {**edge, "strength": strength}), flat)
