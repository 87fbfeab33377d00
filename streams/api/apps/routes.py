"""Memories of apps for admins (seed 003, New Admin API Endpoints): read, put right, delete, export, uninstall.

An app id may hold slashes; every path ends in a fixed word or a number, so it can be read in one way only. What is
written is in the log when it is answered, and as a rule also what came of it: who reads next sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from models.events.app import AppUninstalled, CommandResult, MemoriesPurged, MemoryDeleted, MemoryEdited
from models.policy.app import AppPolicy
from streams.api import openapi
from streams.api.apps import examples
from streams.api.apps.messages import (
    EXPORT_FORMAT,
    EXPORT_VERSION,
    Deleted,
    Edited,
    EditMemory,
    Exported,
    FoundMemories,
    Memories,
    MemoryAnswer,
    Pending,
    Purged,
    UninstallApp,
    Uninstalled,
    found_memory,
    importance_inside,
    memory_answer,
    now_utc,
)
from streams.api.apps.ports import AppMemories, SearchMode
from streams.api.apps.space import AppIdInPath, AskedSpace, UserIdInQuery
from streams.api.commands import SpaceCommands
from streams.api.users.messages import MAX_QUERY_CHARS
from streams.http.audit import ACTS, READS_TEXT
from streams.http.bodies import json_answer, read_body
from streams.http.problems import Problem, invalid_field
from streams.http.security import caller, require_admin

_MemoryId = Annotated[int, Path(ge=1, le=2**53, description="As the list has it.", examples=[examples.MEMORY_ID])]
_Text = Annotated[
    str,
    Query(min_length=1, max_length=MAX_QUERY_CHARS, description="What is looked for.", examples=["order numbers"]),
]
_Mode = Annotated[SearchMode, Query(description="By words, by likeness, or both.", examples=["hybrid"])]
_Limit = Annotated[int, Query(ge=1, le=100, description="How many at most.", examples=[10])]
_WithShared = Annotated[bool, Query(description="Also those of other apps that this one may read.", examples=[False])]

_EDIT = msgspec.json.Decoder(EditMemory)
_UNINSTALL = msgspec.json.Decoder(UninstallApp)
_OR_PENDING = openapi.answer(Pending, examples.PENDING, status=HTTPStatus.ACCEPTED)


def apps_router(
    memories: AppMemories, commands: SpaceCommands, policy: AppPolicy, *, now: Callable[[], datetime] = now_utc
) -> APIRouter:
    """Routes over memories of apps. An app that nothing is known of has no memories; it is no error.

    Args:
        memories: As indexed.
        commands: Carries out what is written.
        policy: How long a memory may be.
        now: The clock of commands and exports.
    """
    router = APIRouter(prefix="/apps", tags=["apps"], dependencies=[Depends(require_admin)])
    _add_lists(router, memories, commands, now)
    _add_space(router, commands, policy, now)
    _add_single(router, memories, commands, policy, now)
    return router


def _add_lists(router: APIRouter, memories: AppMemories, commands: SpaceCommands, now: Callable[[], datetime]) -> None:
    @router.get(
        "/{app_id:path}/memories", dependencies=READS_TEXT, responses=openapi.answer(Memories, examples.MEMORIES)
    )
    async def listed(app_id: AppIdInPath, user_id: UserIdInQuery = "", include_shared: _WithShared = False) -> Response:
        """Memories of an app, the latest updated first; those that others share with it after its own."""
        space = AskedSpace(app_id, user_id)
        found = list(await memories.memories(space.app_id, space.user_id))
        if include_shared:
            found += await memories.shared_with(space.app_id, space.user_id)
        await commands.note(space.read(now(), "list", found))
        return json_answer(Memories(memories=list(map(memory_answer, found))))

    @router.get(
        "/{app_id:path}/memories/export", dependencies=READS_TEXT, responses=openapi.answer(Exported, examples.EXPORTED)
    )
    async def export(app_id: AppIdInPath, user_id: UserIdInQuery = "") -> Response:
        """All memories of an app as a file, with what conflicts with what."""
        space = AskedSpace(app_id, user_id)
        found = await memories.memories(space.app_id, space.user_id)
        exported = Exported(
            format=EXPORT_FORMAT,
            version=EXPORT_VERSION,
            app_id=space.app_id,
            user_id=space.user_id,
            exported_at=now(),
            memories=sorted(map(memory_answer, found), key=lambda memory: memory.id),
        )
        await commands.note(space.read(now(), "export", found))
        name = quote(f"memories-{space.app_id}.json", safe="")
        headers = {"Content-Disposition": f"attachment; filename=\"memories.json\"; filename*=UTF-8''{name}"}
        return json_answer(exported, headers=headers)

    @router.get(
        "/{app_id:path}/memories/search",
        dependencies=READS_TEXT,
        responses=openapi.answer(FoundMemories, examples.FOUND),
    )
    async def search(
        app_id: AppIdInPath, q: _Text, user_id: UserIdInQuery = "", mode: _Mode = "hybrid", limit: _Limit = 10
    ) -> Response:
        """Memories of an app that speak of something, best first."""
        space = AskedSpace(app_id, user_id)
        found = await memories.find(space.app_id, space.user_id, q, mode=mode, top_k=limit)
        await commands.note(space.read(now(), "search", found))
        return json_answer(FoundMemories(memories=[found_memory(*each) for each in found]))


def _add_space(router: APIRouter, commands: SpaceCommands, policy: AppPolicy, now: Callable[[], datetime]) -> None:
    def require_whole(space: AskedSpace) -> None:
        """An app's own space is not all of its memories where users have spaces: nobody is to think so.

        Raises:
            Problem: 422, no user is named.
        """
        if "user" in policy.spaces and not space.user_id:
            detail = "users have memories of their own here: name one (GET /apps lists them), or POST /v1/erase the app"
            raise invalid_field("user_id", detail)

    @router.delete(
        "/{app_id:path}/memories", dependencies=ACTS, responses=openapi.answer(Purged, examples.PURGED) | _OR_PENDING
    )
    async def purge(app_id: AppIdInPath, user_id: UserIdInQuery = "") -> Response:
        """Delete all memories of an app, and conversations that wait to become one."""
        space = AskedSpace(app_id, user_id)
        require_whole(space)
        command = MemoriesPurged(**space.command(now()))
        result = await commands.carry_out(command)
        if result is None:
            return space.pending(command.request_id)
        return json_answer(Purged(success=True, deleted_count=result.count))

    @router.post(
        "/{app_id:path}/uninstall",
        dependencies=ACTS,
        openapi_extra=openapi.body(UninstallApp, examples.UNINSTALL),
        responses=openapi.answer(Uninstalled, examples.UNINSTALLED) | _OR_PENDING,
    )
    async def uninstall(request: Request, app_id: AppIdInPath, user_id: UserIdInQuery = "") -> Response:
        """Note that an app is gone. Its memories stay, unless they are to be purged with it."""
        space = AskedSpace(app_id, user_id)
        asked = await read_body(request, _UNINSTALL)
        if asked.purge_memories:
            require_whole(space)
        command = AppUninstalled(**space.command(now()), purge_memories=asked.purge_memories)
        result = await commands.carry_out(command)
        if result is None:
            return space.pending(command.request_id)
        deleted = result.count if asked.purge_memories else 0
        return json_answer(Uninstalled(success=True, purged=asked.purge_memories, deleted_count=deleted))


def _add_single(
    router: APIRouter,
    memories: AppMemories,
    commands: SpaceCommands,
    policy: AppPolicy,
    now: Callable[[], datetime],
) -> None:
    async def one_of(space: AskedSpace, memory_id: int) -> MemoryAnswer | None:
        found = await memories.memories(space.app_id, space.user_id)
        return next((memory_answer(each) for each in found if each.memory_id == memory_id), None)

    @router.get(
        "/{app_id:path}/memories/{memory_id}",
        dependencies=READS_TEXT,
        responses=openapi.answer(MemoryAnswer, examples.MEMORY),
    )
    async def one(app_id: AppIdInPath, memory_id: _MemoryId, user_id: UserIdInQuery = "") -> Response:
        """One memory of an app."""
        space = AskedSpace(app_id, user_id)
        found = await one_of(space, memory_id)
        if found is None:
            raise _no_such_memory()
        await commands.note(space.read(now(), "one", [found], memory_id))
        return json_answer(found)

    @router.put(
        "/{app_id:path}/memories/{memory_id}",
        dependencies=ACTS,
        openapi_extra=openapi.body(EditMemory, examples.EDIT),
        responses=openapi.answer(Edited, examples.EDITED) | _OR_PENDING,
    )
    async def edit(
        request: Request, app_id: AppIdInPath, memory_id: _MemoryId, user_id: UserIdInQuery = ""
    ) -> Response:
        """Put a memory right by hand, pin it, or share it with other apps."""
        space = AskedSpace(app_id, user_id)
        asked = _fit(await read_body(request, _EDIT), space, policy)
        command = MemoryEdited(
            **space.command(now()),
            memory_id=memory_id,
            content=asked.content,
            importance=importance_inside(asked.importance),
            tags=asked.tags,
            pinned=asked.pinned,
            shared_with=asked.shared_with,
        )
        result = await commands.carry_out(command)
        if result is None:
            return space.pending(command.request_id)
        _require_done(result, policy)
        return json_answer(Edited(success=True, memory=await one_of(space, memory_id) if caller().text else None))

    @router.delete(
        "/{app_id:path}/memories/{memory_id}",
        dependencies=ACTS,
        responses=openapi.answer(Deleted, examples.DELETED) | _OR_PENDING,
    )
    async def delete(app_id: AppIdInPath, memory_id: _MemoryId, user_id: UserIdInQuery = "") -> Response:
        """Delete one memory. One that is gone already is no error, and said so."""
        space = AskedSpace(app_id, user_id)
        command = MemoryDeleted(**space.command(now()), memory_id=memory_id)
        result = await commands.carry_out(command)
        if result is None:
            return space.pending(command.request_id)
        if result.outcome == "not_found":
            return json_answer(Deleted(success=True, deleted_count=0, already_gone=True))
        return json_answer(Deleted(success=True))


def _fit(asked: EditMemory, space: AskedSpace, policy: AppPolicy) -> EditMemory:
    """What is to change, once it is known that it can.

    Raises:
        Problem: 422, with the field; 403, it is to be shared with another tenant.
    """
    if asked == EditMemory():
        raise invalid_field("", "nothing is to change: name content, importance, tags, pinned or sharedWith")
    if asked.content is not None and len(asked.content) > policy.most_content_chars:
        raise _too_long(policy)
    if asked.tags is not None and len(asked.tags) > policy.tags:
        raise invalid_field("tags", f"a memory has {policy.tags} at most")
    if asked.shared_with is not None:
        if len(asked.shared_with) > policy.shared_with:
            raise invalid_field("sharedWith", f"a memory is shared with {policy.shared_with} apps at most")
        if not all(name.isprintable() and name != space.app_id for name in asked.shared_with):
            raise invalid_field("sharedWith", "names the memory's own app, or holds control characters")
        for name in asked.shared_with:
            caller().app_of(name)  # what another tenant's prompts are to hold, its own admins decide
    return asked


def _require_done(result: CommandResult, policy: AppPolicy) -> None:
    match result.outcome:
        case "not_found":
            raise _no_such_memory()
        case "too_long":
            raise _too_long(policy)
        case "too_many_pinned":
            detail = f"{policy.most_pinned} memories are pinned already, so that others can be compacted: let one go"
            raise Problem(HTTPStatus.CONFLICT, "too_many_pinned", detail)


def _too_long(policy: AppPolicy) -> Problem:
    return invalid_field("content", f"a memory has {policy.most_content_chars} characters at most")


def _no_such_memory() -> Problem:
    return Problem(
        HTTPStatus.NOT_FOUND, "not_found", "no such memory: GET /apps/{app_id}/memories lists those that there are"
    )
