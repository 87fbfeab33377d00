"""Commands on project memory over HTTP: written to the log, carried out by the fold, audited, and seen.

| asked | answered |
|---|---|
| done, or it was so already | 200, with the memory as it is now |
| an end before the beginning, a relationship to itself or in a circle | 422, and which |
| no such item, or a project that nothing is known of | 404 |
| more than the policy allows | 409, and what |
| not seen within the time | 202: it is in the log, and will be carried out once |
"""

from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from models import events
from streams.api.commands import Commands
from streams.api.projects.items import ConversationName, MemoryName
from streams.api.projects.messages import (
    DONE_OUTCOMES,
    PROJECTS,
    AddMemory,
    AskedProject,
    DeedAnswer,
    EditProjectMemory,
    ImportItems,
    ItemName,
    OfProject,
    PendingDeed,
    Relate,
    SetStatus,
    no_such,
    require_done,
)
from streams.api.projects.reading import ProjectReader
from streams.http.problems import invalid_field, not_found
from streams.http.route import Accepted, RouteRules
from streams.http.security import caller
from streams.settings.http import TokenRole

COMMAND: RouteRules = {"role": TokenRole.ADMIN, "audits": "acted", "errors": (HTTPStatus.CONFLICT,)}
"""What every route declares that changes something."""
_BEGINNING = (events.ProjectMemoryAdded, events.ProjectImported, events.ConversationStatusSet)
"""What may begin a project."""


class ProjectCommandRoutes:
    """Routes that change something, with what is answered of them.

    Args:
        reader: Where what they changed shows.
        commands: Carries them out.
    """

    def __init__(
        self, reader: ProjectReader, commands: Commands[events.ManualProjectCommand, events.DeedResult]
    ) -> None:
        self._reader = reader
        self._commands = commands

    @PROJECTS.post("/import", "import_project_items", **COMMAND)
    async def bring_back(self, asked: OfProject, body: ImportItems) -> DeedAnswer | Accepted[PendingDeed]:
        """Import items of an exported project. Existing items are replaced, so a repeat changes nothing."""
        return await self.do(asked, events.ProjectImported, **structs.asdict(body))

    @PROJECTS.post("/memories", "add_project_memory", **COMMAND)
    async def add(self, asked: OfProject, body: AddMemory) -> DeedAnswer | Accepted[PendingDeed]:
        """Add a memory by hand. A valid memory with the same content is strengthened instead.

        Raises:
            Problem: 403 no admin; 422 it ends before it begins.
        """
        if body.valid_until is not None and body.valid_until <= (body.valid_from or self._reader.now()):
            raise invalid_field("valid_until", "must be after valid_from, or after now without valid_from")
        fields = structs.asdict(body)
        return await self.do(asked, events.ProjectMemoryAdded, memory_type=fields.pop("type"), **fields)

    @PROJECTS.put("/memories/{memory_id}", "edit_project_memory", **COMMAND)
    async def edit(
        self, asked: OfProject, body: EditProjectMemory, *, memory_id: MemoryName
    ) -> DeedAnswer | Accepted[PendingDeed]:
        """Edit, expire, reopen, archive or restore a memory. The earlier version stays in its history."""
        _require_sensible(body)
        return await self.do(asked, events.ProjectMemoryEdited, "memory", memory_id=memory_id, **structs.asdict(body))

    @PROJECTS.delete("/memories/{memory_id}", "delete_project_memory", **COMMAND)
    async def delete(self, asked: OfProject, *, memory_id: MemoryName) -> DeedAnswer | Accepted[PendingDeed]:
        """Delete a memory with all relationships to it. Memories that it superseded become valid again."""
        return await self.do(asked, events.ProjectMemoryDeleted, "memory", memory_id=memory_id)

    @PROJECTS.post("/pending/{pending_id}/{decision}", "decide_pending_fact", **COMMAND)
    async def decide(
        self,
        asked: OfProject,
        *,
        pending_id: Annotated[ItemName, Meta(description="Id of the pending fact.")],
        decision: Annotated[Literal["promote", "discard"], Meta(description="Promote it to a memory, or discard it.")],
    ) -> DeedAnswer | Accepted[PendingDeed]:
        """Promote a pending fact to a memory, or discard it."""
        decided = {"pending_id": pending_id, "promoted": decision == "promote"}
        return await self.do(asked, events.PendingFactDecided, "pending fact", **decided)

    @PROJECTS.put("/relationships", "set_relationship", **COMMAND)
    async def relate(self, asked: OfProject, body: Relate) -> DeedAnswer | Accepted[PendingDeed]:
        """Set a relationship between two memories, or change its strength."""
        return await self.do(asked, events.RelationshipSet, **structs.asdict(body))

    @PROJECTS.delete("/relationships", "delete_relationship", **COMMAND)
    async def unrelate(
        self,
        asked: OfProject,
        *,
        source_id: Annotated[ItemName, Meta(description="Id of the source memory.")],
        target_id: Annotated[ItemName, Meta(description="Id of the target memory.")],
        relation: Annotated[ItemName, Meta(description="Type of the relationship.")],
    ) -> DeedAnswer | Accepted[PendingDeed]:
        """Delete a relationship."""
        edge = {"source_id": source_id, "target_id": target_id, "relation": relation}
        return await self.do(asked, events.RelationshipSet, "relationship", **edge, strength=None)

    @PROJECTS.put("/conversations/{conversation_id:path}/status", "set_conversation_status", **COMMAND)
    async def set_status(
        self, asked: OfProject, body: SetStatus, *, conversation_id: ConversationName
    ) -> DeedAnswer | Accepted[PendingDeed]:
        """Start, pause or end a conversation. Send its turns as usual."""
        result = structs.asdict(body)
        return await self.do(asked, events.ConversationStatusSet, conversation_id=conversation_id, **result)

    @PROJECTS.post("/consolidate", "consolidate_project", **COMMAND)
    async def consolidate(self, asked: OfProject) -> DeedAnswer | Accepted[PendingDeed]:
        """Start a consolidation now; it also runs on schedule. The standing shows when it has ended."""
        return await self.do(asked, events.ConsolidationAsked)

    async def do(
        self, asked: OfProject, kind: type[events.ManualProjectCommand], named: str = "", **fields: Any
    ) -> DeedAnswer:
        """Carry a command out, and tell what came of it.

        Args:
            asked: To which project.
            kind: Of the command.
            named: What its path names, which may be no more than a text; empty: nothing.
            fields: Of the command.

        Raises:
            Problem: What the fold refused; 404 for a project that nothing is known of.
        """
        project = AskedProject(asked)
        command: events.ManualProjectCommand = kind(**project.command(self._reader.now()), **fields)
        if named:
            _require_writable(command, named)
        if kind not in _BEGINNING and await self._reader.projects.stats(project.app_id, project.project_id) is None:
            raise not_found("the project is unknown: GET /v1/projects lists the known ones")
        result = await self._commands.carry_out(command)
        if result is None:
            raise project.pending(command.request_id)
        done = _result_of(command, result)
        memory = (await self._reader.view(project)).memories.get(done.item_id) if caller().text else None
        return DeedAnswer(
            success=isinstance(command, events.ProjectMemoryDeleted) or done.outcome in DONE_OUTCOMES,
            outcome=done.outcome,
            item_id=done.item_id,
            count=done.count,
            detail=done.detail,
            memory=None if memory is None else self._reader.present(memory),
        )


def _result_of(command: events.ManualProjectCommand, result: events.DeedResult) -> events.DeedResult:
    """What came of it; no error is that what is to go has gone already, nor that an import was taken in part."""
    if isinstance(command, events.ProjectImported) or (
        isinstance(command, events.ProjectMemoryDeleted) and result.outcome == "not_found"
    ):
        return result
    return require_done(result)


def _require_sensible(asked: EditProjectMemory) -> None:
    """Let through what can change.

    Raises:
        Problem: 422, with the field.
    """
    if asked == EditProjectMemory():
        names = ", ".join(asked.__struct_fields__)
        raise invalid_field("", f"has no change: give one of {names}")
    if asked.reopened and asked.valid_until is not None:
        raise invalid_field("reopened", "excludes valid_until: leave one out")
    if asked.valid_from is not None and asked.valid_until is not None and asked.valid_until <= asked.valid_from:
        raise invalid_field("valid_until", "must be after valid_from")


def _require_writable(command: events.ManualProjectCommand, named: str) -> None:
    """Let through a command that can stand in the log: an id in a path is no more than a text.

    Raises:
        Problem: 404, no item can be called so.
    """
    try:
        msgspec.convert(command, type(command), from_attributes=True)
    except msgspec.ValidationError:
        raise no_such(named, {"pending fact": "pending", "relationship": "graph"}.get(named, "memories")) from None
