"""Commands on project memory over HTTP: written to the log, carried out by the fold, audited, and seen.

| asked | answered |
|---|---|
| done, or it was so already | 200, with the memory as it is now |
| an end before the beginning, a relationship to itself or in a circle | 422, and which |
| no such item, or a project that nothing is known of | 404 |
| more than the policy allows | 409, and what |
| not seen within the time | 202: it is in the log, and will be carried out once |
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from models.events.project import (
    ConsolidationAsked,
    ConversationStatusSet,
    DeedResult,
    PendingFactDecided,
    ProjectDeed,
    ProjectImported,
    ProjectMemoryAdded,
    ProjectMemoryDeleted,
    ProjectMemoryEdited,
    RelationshipSet,
)
from streams.api import openapi
from streams.api.commands import Commands
from streams.api.projects import examples
from streams.api.projects.command_messages import (
    AddMemory,
    DeedAnswer,
    EditProjectMemory,
    PendingDeed,
    Relate,
    SetStatus,
)
from streams.api.projects.items import ConversationInPath, ItemIdInPath
from streams.api.projects.reading import ProjectReader
from streams.api.projects.space import DONE_OUTCOMES, AppIdInQuery, AskedProject, ProjectIdInPath, no_such, require_done
from streams.http.audit import ACTS
from streams.http.bodies import read_body
from streams.http.problems import Problem, invalid_field
from streams.http.security import caller, require_admin

ADMINS = [Depends(require_admin), *ACTS]
OR_PENDING = openapi.answer(PendingDeed, examples.WAITS, status=HTTPStatus.ACCEPTED)
DONE = openapi.answer(DeedAnswer, examples.DONE) | OR_PENDING
_ADD = msgspec.json.Decoder(AddMemory)
_EDIT = msgspec.json.Decoder(EditProjectMemory)
_RELATE = msgspec.json.Decoder(Relate)
_STATUS = msgspec.json.Decoder(SetStatus)
_BEGINNING = (ProjectMemoryAdded, ProjectImported, ConversationStatusSet)
"""What may begin a project."""
_Decision = Annotated[
    Literal["promote", "discard"], Path(description="It becomes a memory, or goes.", examples=["promote"])
]
_PendingId = Annotated[
    str, Path(min_length=1, max_length=64, description="As the list has it.", examples=[examples.PENDING_ID])
]
_SourceId = Annotated[str, Query(max_length=64, description="Where it goes out.", examples=[examples.MEMORY_ID])]
_TargetId = Annotated[str, Query(max_length=64, description="Where it leads to.", examples=[examples.OTHER_ID])]
_Relation = Annotated[str, Query(max_length=64, description="Its type.", examples=["depends_on"])]


class Doing:
    """Deeds to projects, with what is answered of them.

    Args:
        reader: Where what they changed shows.
        commands: Carries them out.
    """

    def __init__(self, reader: ProjectReader, commands: Commands[ProjectDeed, DeedResult]) -> None:
        self._reader = reader
        self._commands = commands

    async def add(self, asked: AskedProject, body: AddMemory) -> DeedAnswer | PendingDeed:
        """Have something known.

        Raises:
            Problem: 403 no admin; 422 it ends before it begins.
        """
        now = self._reader.now()
        if body.valid_until is not None and body.valid_until <= (body.valid_from or now):
            raise invalid_field("valid_until", "is not after valid_from, or not after now where that is not given")
        fields = {name: getattr(body, name) for name in body.__struct_fields__ if name != "type"}
        return await self.done(asked, ProjectMemoryAdded(**asked.command(now), memory_type=body.type, **fields))

    async def do(self, asked: AskedProject, command: ProjectDeed) -> Response:
        """`done` as the answer to a request."""
        return asked.answer(await self.done(asked, command))

    async def done(self, asked: AskedProject, command: ProjectDeed) -> DeedAnswer | PendingDeed:
        """Carry a command out, and tell what came of it.

        Raises:
            Problem: What the fold refused; 404 for a project that nothing is known of.
        """
        if not isinstance(command, _BEGINNING) and not await self._reader.known(asked):
            raise Problem(
                HTTPStatus.NOT_FOUND, "not_found", "nothing is known of this project: GET /v1/projects lists them"
            )
        result = await self._commands.carry_out(command)
        if result is None:
            return asked.pending(command.request_id)
        done = _told(command, result)
        memory = (await self._reader.view(asked)).memories.get(done.item_id) if caller().text else None
        return DeedAnswer(
            success=isinstance(command, ProjectMemoryDeleted) or done.outcome in DONE_OUTCOMES,
            outcome=done.outcome,
            item_id=done.item_id,
            count=done.count,
            detail=done.detail,
            memory=None if memory is None else self._reader.present(memory),
        )


def _told(command: ProjectDeed, result: DeedResult) -> DeedResult:
    """What came of it; no error is that what is to go has gone already, nor that an import was taken in part."""
    if isinstance(command, ProjectImported) or (
        isinstance(command, ProjectMemoryDeleted) and result.outcome == "not_found"
    ):
        return result
    return require_done(result)


def add_deeds(router: APIRouter, reader: ProjectReader, doing: Doing) -> None:
    """Routes that change something."""
    _add_memories(router, reader, doing)
    _add_relationships(router, reader, doing)
    _add_rest(router, reader, doing)


def _add_memories(router: APIRouter, reader: ProjectReader, doing: Doing) -> None:
    @router.post(
        "/{project_id:path}/memories",
        dependencies=ADMINS,
        openapi_extra=openapi.body(AddMemory, examples.ADD),
        responses=DONE,
    )
    async def add(request: Request, project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """Write a memory by hand; what is known already is strengthened."""
        asked = AskedProject(app_id, project_id)
        return asked.answer(await doing.add(asked, await read_body(request, _ADD)))

    @router.put(
        "/{project_id:path}/memories/{memory_id}",
        dependencies=ADMINS,
        openapi_extra=openapi.body(EditProjectMemory, examples.EDIT),
        responses=DONE,
    )
    async def edit(
        request: Request, project_id: ProjectIdInPath, memory_id: ItemIdInPath, app_id: AppIdInQuery = None
    ) -> Response:
        """Put a memory right, expire or reopen it, put it away or restore it; what was known before stays known."""
        asked = AskedProject(app_id, project_id)
        body = _sensible(await read_body(request, _EDIT))
        fields = {name: getattr(body, name) for name in body.__struct_fields__}
        command = ProjectMemoryEdited(**asked.command(reader.now()), memory_id=memory_id, **fields)
        return await doing.do(asked, _writable(command, "memory"))

    @router.delete("/{project_id:path}/memories/{memory_id}", dependencies=ADMINS, responses=DONE)
    async def delete(project_id: ProjectIdInPath, memory_id: ItemIdInPath, app_id: AppIdInQuery = None) -> Response:
        """Delete a memory with all relationships to it; what it had superseded holds again."""
        asked = AskedProject(app_id, project_id)
        command = ProjectMemoryDeleted(**asked.command(reader.now()), memory_id=memory_id)
        return await doing.do(asked, _writable(command, "memory"))

    @router.post("/{project_id:path}/pending/{pending_id}/{decision}", dependencies=ADMINS, responses=DONE)
    async def decide(
        project_id: ProjectIdInPath, pending_id: _PendingId, decision: _Decision, app_id: AppIdInQuery = None
    ) -> Response:
        """Promote a pending fact to a memory, or discard it."""
        asked = AskedProject(app_id, project_id)
        command = PendingFactDecided(
            **asked.command(reader.now()), pending_id=pending_id, promoted=decision == "promote"
        )
        return await doing.do(asked, _writable(command, "pending fact"))


def _add_relationships(router: APIRouter, reader: ProjectReader, doing: Doing) -> None:
    @router.put(
        "/{project_id:path}/relationships",
        dependencies=ADMINS,
        openapi_extra=openapi.body(Relate, examples.RELATE),
        responses=DONE,
    )
    async def relate(request: Request, project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """Relate one memory to another, or give their relationship another strength."""
        asked = AskedProject(app_id, project_id)
        body = await read_body(request, _RELATE)
        fields = {name: getattr(body, name) for name in body.__struct_fields__}
        return await doing.do(asked, RelationshipSet(**asked.command(reader.now()), **fields))

    @router.delete("/{project_id:path}/relationships", dependencies=ADMINS, responses=DONE)
    async def unrelate(
        project_id: ProjectIdInPath,
        source_id: _SourceId,
        target_id: _TargetId,
        relation: _Relation,
        app_id: AppIdInQuery = None,
    ) -> Response:
        """Take a relationship back."""
        asked = AskedProject(app_id, project_id)
        command = RelationshipSet(
            **asked.command(reader.now()), source_id=source_id, target_id=target_id, relation=relation, strength=None
        )
        return await doing.do(asked, _writable(command, "relationship"))


def _add_rest(router: APIRouter, reader: ProjectReader, doing: Doing) -> None:
    @router.put(
        "/{project_id:path}/conversations/{conversation_id:path}/status",
        dependencies=ADMINS,
        openapi_extra=openapi.body(SetStatus, examples.STATUS),
        responses=DONE,
    )
    async def set_status(
        request: Request,
        project_id: ProjectIdInPath,
        conversation_id: ConversationInPath,
        app_id: AppIdInQuery = None,
    ) -> Response:
        """Start, pause or end a conversation; its turns come as turns."""
        asked = AskedProject(app_id, project_id)
        body = await read_body(request, _STATUS)
        if not conversation_id.isprintable():
            raise invalid_field("conversation_id", "holds control characters")
        command = ConversationStatusSet(
            **asked.command(reader.now()), conversation_id=conversation_id, status=body.status, summary=body.summary
        )
        return await doing.do(asked, command)

    @router.post("/{project_id:path}/consolidate", dependencies=ADMINS, responses=DONE)
    async def consolidate(project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """Have the project consolidated now; it also happens by itself. The standing says when it has ended."""
        asked = AskedProject(app_id, project_id)
        return await doing.do(asked, ConsolidationAsked(**asked.command(reader.now())))


def _sensible(asked: EditProjectMemory) -> EditProjectMemory:
    """What is to change, once it is known that it can.

    Raises:
        Problem: 422, with the field.
    """
    if asked == EditProjectMemory():
        names = ", ".join(asked.__struct_fields__)
        raise invalid_field("", f"nothing is to change: name some of {names}")
    if asked.reopened and asked.valid_until is not None:
        raise invalid_field("reopened", "contradicts valid_until")
    if asked.valid_from is not None and asked.valid_until is not None and asked.valid_until <= asked.valid_from:
        raise invalid_field("valid_until", "is not after valid_from")
    return asked


def _writable(command: ProjectDeed, what: str) -> ProjectDeed:
    """The command, if it can stand in the log: an id in a path is no more than a text.

    Raises:
        Problem: 404, no item can be called so.
    """
    try:
        return msgspec.convert(command, type(command), from_attributes=True)
    except msgspec.ValidationError:
        where = "pending" if what == "pending fact" else "graph" if what == "relationship" else "memories"
        raise no_such(what, where) from None
