"""`turntide project add`, `edit`, `expire`, `archive`, `restore` and `promote`: putting a project's memory right."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobs.cli import examples
from jobs.memory.project_asking import (
    AppArgument,
    MemoryArgument,
    OutputOption,
    ProjectArgument,
    Target,
    finish,
    utc_time,
)
from jobs.shared.output import OutputFormat
from jobs.shared.role_api import TOKEN_VARIABLE, TokenOption, UrlOption, path_part
from models.events.project_items import MemoryType

app = typer.Typer()
Content = Annotated[str, typer.Argument(metavar="TEXT", help="What is to be known.")]


class Decision(StrEnum):
    """What becomes of a pending fact."""

    PROMOTE = "promote"
    DISCARD = "discard"


@app.command(epilog=examples("turntide project add shop web 'We use PostgreSQL.' --type decision --subject database"))
def add(
    app_id: AppArgument,
    project: ProjectArgument,
    content: Content,
    *,
    kind: Annotated[MemoryType, typer.Option("--type", help="What it is.")] = MemoryType.FACT,
    subject: Annotated[str, typer.Option("--subject", help="What a decision is about; a newer one replaces it.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Once for each.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", min=0, max=1, help="None: the type's.")] = None,
    valid_from: Annotated[str, typer.Option("--valid-from", help="None: now.")] = "",
    valid_until: Annotated[str, typer.Option("--valid-until", help="None: without end.")] = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write a memory by hand; what is known already is strengthened."""
    body = {"content": content, "type": kind.value, "subject": subject, "tags": tag or [], "importance": importance}
    body |= {"valid_from": utc_time(valid_from), "valid_until": utc_time(valid_until)}
    finish(Target(app_id, project, url, token).ask("POST", "memories", body=body), output)


@app.command(
    epilog=examples(
        "turntide project edit shop web mjuohs00-9c1d22ab --content 'We use PostgreSQL 17.'",
        "turntide project edit shop web mjuohs00-9c1d22ab --importance 0.9 --tag storage",
    )
)
def edit(
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    content: Annotated[str | None, typer.Option("--content", help="The new text.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="Its category.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", min=0, max=1, help="0-1.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="All its tags; once for each.")] = None,
    valid_from: Annotated[str, typer.Option("--valid-from", help="Since when it holds.")] = "",
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Put a memory right; what is not named stays, and what was known before stays known."""
    given = {"content": content, "category": category, "importance": importance, "tags": tag or None}
    _edit(Target(app_id, project, url, token), memory_id, given | {"valid_from": utc_time(valid_from)}, output)


@app.command(epilog=examples("turntide project expire shop web mjuohs00-9c1d22ab --at 2026-02-01"))
def expire(
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    when: Annotated[str, typer.Option("--at", help="From then on it does not hold.")],
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """End a memory: it held before, and can be asked for by time."""
    _edit(Target(app_id, project, url, token), memory_id, {"valid_until": utc_time(when)}, output)


@app.command(epilog=examples("turntide project archive shop web mjuohs00-9c1d22ab"))
def archive(
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Put a memory away: it is not found any longer unless asked for."""
    _edit(Target(app_id, project, url, token), memory_id, {"archived": True}, output)


@app.command(epilog=examples("turntide project restore shop web mjuohs00-9c1d22ab"))
def restore(
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Bring back what was put away."""
    _edit(Target(app_id, project, url, token), memory_id, {"archived": False}, output)


@app.command(
    epilog=examples(
        "turntide project promote shop web mjuohs00-5b6a7c8d", "turntide project promote shop web ID --as discard"
    )
)
def promote(
    app_id: AppArgument,
    project: ProjectArgument,
    pending_id: Annotated[str, typer.Argument(metavar="ID", help="As `pending` shows it.")],
    *,
    decision: Annotated[Decision, typer.Option("--as", help="Whether it is promoted or goes.")] = Decision.PROMOTE,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make a memory of a pending fact, or discard it."""
    end = f"pending/{path_part(pending_id)}/{decision.value}"
    finish(Target(app_id, project, url, token).ask("POST", end), output)


def _edit(target: Target, memory_id: str, given: Mapping[str, Any], output: OutputFormat) -> None:
    body = {name: value for name, value in given.items() if value is not None}
    finish(target.ask("PUT", f"memories/{path_part(memory_id)}", body=body), output)
