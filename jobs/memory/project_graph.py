"""`turntide project graph` and `relate`: how memories of a project stand to each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobs.memory.project_asking import AppArgument, OutputOption, ProjectArgument, Target, finish
from jobs.shared.output import Output, OutputFormat
from jobs.shared.role_api import TOKEN_VARIABLE, TokenOption, UrlOption

GRAPH_EXAMPLES = (
    "turntide project graph shop web",
    "turntide project graph shop web --of mjuohs00-9c1d22ab --depth 2",
    "turntide project graph shop web --of mjuohs00-9c1d22ab --to mjuohs00-1f0e77cd",
    "turntide project graph shop web --of mjuohs00-9c1d22ab --dependents",
)
RELATE_EXAMPLES = (
    "turntide project relate shop web mjuohs00-9c1d22ab depends_on mjuohs00-1f0e77cd --strength 0.8",
    "turntide project relate shop web mjuohs00-9c1d22ab depends_on mjuohs00-1f0e77cd --off",
)


def graph(
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    of: Annotated[str, typer.Option("--of", metavar="ID", help="Only what is near this memory.")] = "",
    depth: Annotated[int, typer.Option("--depth", min=1, max=8, help="Relationships away.")] = 1,
    to: Annotated[str, typer.Option("--to", metavar="ID", help="The way from --of to this memory.")] = "",
    dependents: Annotated[bool, typer.Option("--dependents", help="What depends on --of.")] = False,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print relationships: all of them, what is near a memory, a way between two, or what depends on one."""
    if (to or dependents) and not of:
        raise typer.BadParameter("--to and --dependents need --of ID")
    if to:
        params: dict[str, Any] = {"source_id": of, "target_id": to}
        found = Target(app_id, project, url, token).ask("GET", "graph/path", params=params).body
        Output(output).rows(f"from {of} to {to}", found["edges"])
        if not found["found"]:
            Output(output).message("there is no way")
        return
    if of:
        end = "graph/dependents" if dependents else "graph/neighbours"
        params = {"memory_id": of} | ({} if dependents else {"depth": depth})
        related = Target(app_id, project, url, token).ask("GET", end, params=params).body["related"]
        Output(output).rows(f"related to {of}", related)
        return
    whole = Target(app_id, project, url, token).ask("GET", "graph").body
    if output is OutputFormat.JSON:
        Output(output).record(whole)
        return
    told = {node["id"]: node["content"] for node in whole["nodes"]}
    rows = [
        {
            "from": told[each["source_id"]],
            "relation": each["type"],
            "to": told[each["target_id"]],
            "strength": each["strength"],
        }
        for each in whole["edges"]
    ]
    Output(output).rows(f"relationships of {project}", rows)


def relate(
    app_id: AppArgument,
    project: ProjectArgument,
    source: Annotated[str, typer.Argument(metavar="ID", help="The memory it goes out from.")],
    relation: Annotated[str, typer.Argument(help="depends_on, related_to, contradicts, supersedes, or any name.")],
    target: Annotated[str, typer.Argument(metavar="OTHER", help="The memory it leads to.")],
    *,
    strength: Annotated[float, typer.Option("--strength", min=0, max=1, help="0-1.")] = 1.0,
    off: Annotated[bool, typer.Option("--off", help="Take it back.")] = False,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Relate one memory to another, or take that back."""
    named: dict[str, Any] = {"source_id": source, "target_id": target, "relation": relation}
    if off:
        done = Target(app_id, project, url, token).ask("DELETE", "relationships", params=named)
    else:
        done = Target(app_id, project, url, token).ask("PUT", "relationships", body=named | {"strength": strength})
    finish(done, output)
