"""`turntide project add`, `edit`, `expire`, `archive`, `restore` and `promote`: putting a project's memory right."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from jobs.memory.project_asking import MemoryArgument, app, flat, utc_time
from jobs.shared.options import AppArgument, ProjectArgument
from jobs.shared.role_api import CommandContext, role_command
from models.events.project_items import MemoryType

Content = Annotated[str, typer.Argument(metavar="TEXT", help="What is to be known.")]


class PendingDecision(StrEnum):
    """What becomes of a pending fact."""

    PROMOTE = "promote"
    DISCARD = "discard"


@role_command(app, "turntide project add shop web 'We use PostgreSQL.' --type decision --subject database")
def add(
    role: CommandContext,
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
) -> None:
    """Write a memory by hand; what is known already is strengthened."""
    body = {"content": content, "type": kind.value, "subject": subject, "tags": tag or [], "importance": importance}
    body |= {"valid_from": utc_time(valid_from), "valid_until": utc_time(valid_until)}
    role.finish(role.ask("add_project_memory", body, app_id=app_id, project_id=project), flat)


@role_command(
    app,
    "turntide project edit shop web mjuohs00-9c1d22ab --content 'We use PostgreSQL 17.'",
    "turntide project edit shop web mjuohs00-9c1d22ab --importance 0.9 --tag storage",
)
def edit(
    role: CommandContext,
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    content: Annotated[str | None, typer.Option("--content", help="The new text.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="Its category.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", min=0, max=1, help="0-1.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="All its tags; once for each.")] = None,
    valid_from: Annotated[str, typer.Option("--valid-from", help="Since when it holds.")] = "",
) -> None:
    """Put a memory right; what is not named stays, and what was known before stays known."""
    given = {"content": content, "category": category, "importance": importance, "tags": tag or None}
    _edit(role, app_id, project, memory_id, **given, valid_from=utc_time(valid_from))


@role_command(app, "turntide project expire shop web mjuohs00-9c1d22ab --at 2026-02-01")
def expire(
    role: CommandContext,
    app_id: AppArgument,
    project: ProjectArgument,
    memory_id: MemoryArgument,
    *,
    when: Annotated[str, typer.Option("--at", help="From then on it does not hold.")],
) -> None:
    """End a memory: it held before, and can be asked for by time."""
    _edit(role, app_id, project, memory_id, valid_until=utc_time(when))


@role_command(app, "turntide project archive shop web mjuohs00-9c1d22ab")
def archive(role: CommandContext, app_id: AppArgument, project: ProjectArgument, memory_id: MemoryArgument) -> None:
    """Put a memory away: it is not found any longer unless asked for."""
    _edit(role, app_id, project, memory_id, archived=True)


@role_command(app, "turntide project restore shop web mjuohs00-9c1d22ab")
def restore(role: CommandContext, app_id: AppArgument, project: ProjectArgument, memory_id: MemoryArgument) -> None:
    """Bring back what was put away."""
    _edit(role, app_id, project, memory_id, archived=False)


@role_command(
    app, "turntide project promote shop web mjuohs00-5b6a7c8d", "turntide project promote shop web ID --as discard"
)
def promote(
    role: CommandContext,
    app_id: AppArgument,
    project: ProjectArgument,
    pending_id: Annotated[str, typer.Argument(metavar="ID", help="As `pending` shows it.")],
    *,
    decision: Annotated[
        PendingDecision, typer.Option("--as", help="Whether it is promoted or goes.")
    ] = PendingDecision.PROMOTE,
) -> None:
    """Make a memory of a pending fact, or discard it."""
    named = {"app_id": app_id, "project_id": project, "pending_id": pending_id, "decision": decision}
    role.finish(role.ask("decide_pending_fact", **named), flat)


def _edit(role: CommandContext, app_id: str, project: str, memory_id: str, **given: Any) -> None:
    body = {name: value for name, value in given.items() if value is not None}
    done = role.ask("edit_project_memory", body, app_id=app_id, project_id=project, memory_id=memory_id)
    role.finish(done, flat)
