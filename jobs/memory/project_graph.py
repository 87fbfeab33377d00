"""`turntide memory project graph` and `relate`: how memories of a project stand to each other."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.memory.project_asking import app, flat
from jobs.shared.options import AppArgument, ProjectArgument
from jobs.shared.role_api import CommandContext, role_command


@role_command(
    app,
    "turntide memory project graph shop web",
    "turntide memory project graph shop web --of mjuohs00-9c1d22ab --depth 2",
    "turntide memory project graph shop web --of mjuohs00-9c1d22ab --to mjuohs00-1f0e77cd",
    "turntide memory project graph shop web --of mjuohs00-9c1d22ab --dependents",
)
def graph(
    role: CommandContext,
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    of: Annotated[str, typer.Option("--of", metavar="ID", help="Only what is near this memory.")] = "",
    depth: Annotated[int, typer.Option("--depth", min=1, max=8, help="Relationships away.")] = 1,
    to: Annotated[str, typer.Option("--to", metavar="ID", help="The way from --of to this memory.")] = "",
    dependents: Annotated[bool, typer.Option("--dependents", help="What depends on --of.")] = False,
) -> None:
    """Print relationships: all of them, what is near a memory, a way between two, or what depends on one."""
    named = {"app_id": app_id, "project_id": project}
    if (to or dependents) and not of:
        raise typer.BadParameter("--to and --dependents need --of ID")
    if to:
        found = role.ask("find_path", **named, source_id=of, target_id=to).body
        role.output.rows(f"from {of} to {to}", found["edges"])
        if not found["found"]:
            role.output.message("there is no way")
        return
    if of:
        near = {} if dependents else {"depth": depth}
        found = role.ask("list_dependents" if dependents else "list_neighbours", **named, memory_id=of, **near).body
        role.output.rows(f"related to {of}", found["related"])
        return
    whole = role.ask("get_graph", **named).body
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
    role.output.rows(f"relationships of {project}", rows)


@role_command(
    app,
    "turntide memory project relate shop web mjuohs00-9c1d22ab depends_on mjuohs00-1f0e77cd --strength 0.8",
    "turntide memory project relate shop web mjuohs00-9c1d22ab depends_on mjuohs00-1f0e77cd --off",
)
def relate(  # noqa: PLR0917 - as it is said: one memory, how, another
    role: CommandContext,
    app_id: AppArgument,
    project: ProjectArgument,
    source: Annotated[str, typer.Argument(metavar="ID", help="The memory it goes out from.")],
    relation: Annotated[str, typer.Argument(help="depends_on, related_to, contradicts, supersedes, or any name.")],
    target: Annotated[str, typer.Argument(metavar="OTHER", help="The memory it leads to.")],
    *,
    strength: Annotated[float, typer.Option("--strength", min=0, max=1, help="0-1.")] = 1.0,
    off: Annotated[bool, typer.Option("--off", help="Take it back.")] = False,
) -> None:
    """Relate one memory to another, or take that back."""
    named, edge = (
        {"app_id": app_id, "project_id": project},
        {"source_id": source, "target_id": target, "relation": relation},
    )
    if off:
        role.finish(role.ask("delete_relationship", **named, **edge), flat)
    else:
        role.finish(role.ask("set_relationship", {**edge, "strength": strength}, **named), flat)
