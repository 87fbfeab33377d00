"""Memories of apps for admins: read, put right, delete, export, uninstall.

An app id may hold slashes; every path ends in a fixed word or a number, so it can be read in one way only. What is
written is in the log when it is answered, and as a rule also what came of it: who reads next sees it.
"""

from asyncio import gather
from collections.abc import Callable, Sized
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import quote
from uuid import uuid4

from msgspec import Meta, Struct, field, structs

from models.events.app import (
    AdminCommand,
    AppInjectionSet,
    AppUninstalled,
    MemoriesPurged,
    MemoriesRead,
    MemoryDeleted,
    MemoryEdited,
)
from models.events.base import CommandResult
from models.events.fields import Identifier, printable
from models.policy.app import AppPolicy
from streams.api.answers import answered
from streams.api.apps import messages
from streams.api.commands import SpaceCommands
from streams.api.sessions.turns import SoughtText
from streams.api.users.messages import From, To, between
from streams.http.problems import Problem, invalid_field, not_found
from streams.http.route import Accepted, Group, NotSeenYet, RouteAnswer
from streams.http.security import caller
from streams.index.app_memory import AppMemoryIndex, SearchMode
from streams.settings.http import TokenRole

_How = Literal["list", "one", "search", "export"]
_MOST_USERS, _AT_ONCE = 100, 8
"""Users whose memories one request purges, and how many of them at once."""


class OfSpace(Struct, frozen=True, kw_only=True):
    """A request about a space of memories."""

    app_id: Annotated[Identifier, Meta(description="URL-encoded; any character.")]
    user_id: Annotated[
        str, printable(0, 256), Meta(description="User whose space is meant. Default: the app's own space.")
    ] = ""


class AskedSpace:
    """The space of memories that a request is about.

    Raises:
        Problem: 403 another tenant's app.
    """

    def __init__(self, asked: OfSpace) -> None:
        asked_by = caller()
        asked_by.app_of(asked.app_id)
        self.app_id, self.user_id, self._by = asked.app_id, asked.user_id, asked_by.name

    def command(self, now: datetime) -> dict[str, Any]:
        """What every command to the space begins with."""
        return {
            "app_id": self.app_id,
            "user_id": self.user_id,
            "timestamp": now,
            "request_id": uuid4().hex,
            "by": self._by,
        }

    def read(self, now: datetime, how: _How, found: Sized, memory_id: int | None = None) -> MemoriesRead:
        """What is audited of a look at the space."""
        return MemoriesRead(**self.command(now), how=how, count=len(found), memory_id=memory_id)

    def pending(self, request_id: str) -> NotSeenYet:
        """202: it is written, and will be seen."""
        result = messages.Pending(
            success=False,
            pending=True,
            request_id=request_id,
            hint="the command is in the log and will be carried out once: request the Location again. If the change "
            "does not appear, check that the roles memory and index run",
        )
        place = f"/apps/{quote(self.app_id, safe='')}/memories"
        if self.user_id:
            place += f"?user_id={quote(self.user_id, safe='')}"
        return NotSeenYet(Accepted(result, {"Location": place}))


APPS = Group("apps", "Memories of apps; for admins.", prefix="/v1/apps", formerly="/apps", role=TokenRole.ADMIN)


_MemoryId = Annotated[int, Meta(ge=1, le=2**53, description="Id of the memory in the list.", examples=[7])]


class SoughtMemories(OfSpace, frozen=True, kw_only=True):
    """A request for memories that speak of something."""

    q: SoughtText
    mode: Annotated[SearchMode, Meta(description="Match by words, by similarity, or both.")] = "hybrid"
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of items.")] = 10
    since: From | None = field(default=None, name="from")
    until: To | None = field(default=None, name="to")


@dataclass(frozen=True)
class AppMemoryAdmin:
    """Routes over memories of apps. An app that nothing is known of has no memories; it is no error.

    Args:
        memories: As indexed.
        commands: Carries out what is written.
        policy: How long a memory may be.
        now: The clock of commands and exports.
    """

    memories: AppMemoryIndex
    commands: SpaceCommands
    policy: AppPolicy
    now: Callable[[], datetime] = messages.now_utc

    @APPS.get("/{app_id:path}/memories", "list_app_memories", audits="text_read", kept=True)
    async def listed(
        self,
        asked: OfSpace,
        *,
        include_shared: Annotated[bool, Meta(description="Include memories that other apps share with it.")] = False,
    ) -> messages.Memories:
        """List the memories of an app, latest update first; memories shared by other apps come last."""
        space = AskedSpace(asked)
        found = list(await self.memories.memories(space.app_id, space.user_id))
        if include_shared:
            found += await self.memories.shared_with(space.app_id, space.user_id)
        await self.commands.note(space.read(self.now(), "list", found))
        return messages.Memories(memories=list(map(messages.memory_answer, found)))

    @APPS.get("/{app_id:path}/memories/export", "export_app_memories", audits="text_read")
    async def export(self, asked: OfSpace) -> RouteAnswer[messages.Exported]:
        """Export all memories of an app as a file, with their conflicts."""
        space = AskedSpace(asked)
        found = await self.memories.memories(space.app_id, space.user_id)
        exported = messages.Exported(
            format=messages.EXPORT_FORMAT,
            version=messages.EXPORT_VERSION,
            app_id=space.app_id,
            user_id=space.user_id,
            exported_at=self.now(),
            memories=sorted(map(messages.memory_answer, found), key=lambda memory: memory.id),
        )
        await self.commands.note(space.read(self.now(), "export", found))
        name = quote(f"memories-{space.app_id}.json", safe="")
        headers = {"Content-Disposition": f"attachment; filename=\"memories.json\"; filename*=UTF-8''{name}"}
        return RouteAnswer(exported, headers)

    @APPS.get("/{app_id:path}/memories/search", "search_app_memories", audits="text_read")
    async def search(self, asked: SoughtMemories) -> messages.FoundMemories:
        """Search the memories of an app, best match first."""
        space = AskedSpace(asked)
        window = between(asked.since, asked.until)
        found = await self.memories.find(
            space.app_id, space.user_id, asked.q, mode=asked.mode, top_k=asked.limit, between=window
        )
        await self.commands.note(space.read(self.now(), "search", found))
        return messages.FoundMemories(
            memories=[
                answered(messages.FoundMemory, messages.memory_answer(each), score=score) for each, score in found
            ]
        )

    @APPS.delete("/{app_id:path}/memories", "purge_app_memories", audits="acted", kept=True)
    async def purge(self, asked: OfSpace) -> messages.Purged | Accepted[messages.Pending]:
        """Delete all memories of an app and its users, or of one user, and conversations that await a memory."""
        space, deleted = AskedSpace(asked), await self._purged_users(asked)
        result = await self._done(space, MemoriesPurged)
        return messages.Purged(success=True, deleted_count=deleted + result.count)

    @APPS.post("/{app_id:path}/uninstall", "uninstall_app", audits="acted")
    async def uninstall(
        self, asked: OfSpace, body: messages.UninstallApp
    ) -> messages.Uninstalled | Accepted[messages.Pending]:
        """Mark an app as uninstalled. Its memories are kept unless `purgeMemories` is true."""
        space = AskedSpace(asked)
        deleted = await self._purged_users(asked) if body.purge_memories else 0
        result = await self._done(space, AppUninstalled, purge_memories=body.purge_memories)
        deleted += result.count if body.purge_memories else 0
        return messages.Uninstalled(success=True, purged=body.purge_memories, deleted_count=deleted)

    @APPS.put("/{app_id:path}/injection", "set_app_injection", audits="acted")
    async def inject(
        self,
        body: messages.SetInjection,
        *,
        app_id: Annotated[Identifier, Meta(description="URL-encoded; any character.")],
    ) -> messages.InjectionSet | Accepted[messages.Pending]:
        """Set whether all prompts of an app begin with its memories, at every injection point, or only on request."""
        await self._done(AskedSpace(OfSpace(app_id=app_id)), AppInjectionSet, inject=body.inject)
        return messages.InjectionSet(success=True, inject=body.inject)

    @APPS.get("/{app_id:path}/memories/{memory_id}", "get_app_memory", audits="text_read")
    async def one(self, asked: OfSpace, *, memory_id: _MemoryId) -> messages.MemoryAnswer:
        """Return one memory of an app."""
        space = AskedSpace(asked)
        found = await self._one_of(space, memory_id)
        if found is None:
            raise _no_such_memory()
        await self.commands.note(space.read(self.now(), "one", [found], memory_id))
        return found

    @APPS.put("/{app_id:path}/memories/{memory_id}", "edit_app_memory", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def edit(
        self, asked: OfSpace, body: messages.EditMemory, *, memory_id: _MemoryId
    ) -> messages.Edited | Accepted[messages.Pending]:
        """Edit a memory, pin or unpin it, or share it with other apps."""
        space = AskedSpace(asked)
        _require_fit(body, space, self.policy)
        importance = None if body.importance is None else body.importance / messages.SCALE
        changes = structs.asdict(body) | {"importance": importance}
        result = await self._done(space, MemoryEdited, memory_id=memory_id, **changes)
        _require_done(result, self.policy)
        return messages.Edited(success=True, memory=await self._one_of(space, memory_id) if caller().text else None)

    @APPS.delete("/{app_id:path}/memories/{memory_id}", "delete_app_memory", audits="acted", kept=True)
    async def delete(self, asked: OfSpace, *, memory_id: _MemoryId) -> messages.Deleted | Accepted[messages.Pending]:
        """Delete one memory. Deleting an unknown memory succeeds with `alreadyGone`."""
        result = await self._done(AskedSpace(asked), MemoryDeleted, memory_id=memory_id)
        if result.outcome == "not_found":
            return messages.Deleted(success=True, deleted_count=0, already_gone=True)
        return messages.Deleted(success=True)

    async def _done(self, space: AskedSpace, kind: type[AdminCommand], **fields: Any) -> CommandResult:
        command: AdminCommand = kind(**space.command(self.now()), **fields)
        result = await self.commands.carry_out(command)
        if result is None:
            raise space.pending(command.request_id)
        return result

    async def _one_of(self, space: AskedSpace, memory_id: int) -> messages.MemoryAnswer | None:
        found = await self.memories.memories(space.app_id, space.user_id)
        return next((messages.memory_answer(each) for each in found if each.memory_id == memory_id), None)

    async def _purged_users(self, asked: OfSpace) -> int:
        """How many memories of an app's users went, where none of them is named.

        Raises:
            Problem: 422, they are too many for one request: nobody is to think that all went.
        """
        known = [] if asked.user_id else await self.memories.spaces(_MOST_USERS + 2, asked.app_id)
        users = sorted({each.user_id for each in known} - {""})
        if len(users) > _MOST_USERS:
            detail = f"the app has memories of more than {_MOST_USERS} users: give one, or POST /v1/erase the app"
            raise invalid_field("user_id", detail)
        spaces = [AskedSpace(structs.replace(asked, user_id=user)) for user in users]
        deleted = 0
        for first in range(0, len(spaces), _AT_ONCE):
            part = [self._done(each, MemoriesPurged) for each in spaces[first : first + _AT_ONCE]]
            found = await gather(*part, return_exceptions=True)
            # What failed is told before what is only not seen yet: of that nothing may be in the log.
            for result in sorted(found, key=lambda each: isinstance(each, NotSeenYet | CommandResult)):
                if isinstance(result, BaseException):
                    raise result
                deleted += result.count
        return deleted


def _require_fit(asked: messages.EditMemory, space: AskedSpace, policy: AppPolicy) -> None:
    """Let through what can change.

    Raises:
        Problem: 422, with the field; 403, it is to be shared with another tenant.
    """
    if asked == messages.EditMemory():
        raise invalid_field("", "has no change: give content, importance, tags, pinned or sharedWith")
    if asked.content is not None and len(asked.content) > policy.most_content_chars:
        raise _too_long(policy)
    if asked.tags is not None and len(asked.tags) > policy.tags:
        raise invalid_field("tags", f"has more than {policy.tags} tags")
    if asked.shared_with is not None:
        if len(asked.shared_with) > policy.shared_with:
            raise invalid_field("sharedWith", f"has more than {policy.shared_with} apps")
        if space.app_id in asked.shared_with:
            raise invalid_field("sharedWith", "contains the memory's own app: leave it out")
        for name in asked.shared_with:
            caller().app_of(name)  # what another tenant's prompts are to hold, its own admins decide


def _require_done(result: CommandResult, policy: AppPolicy) -> None:
    match result.outcome:
        case "not_found":
            raise _no_such_memory()
        case "too_long":
            raise _too_long(policy)
        case "too_many_pinned":
            detail = f"{policy.most_pinned} memories are pinned, the maximum (others must stay compactable): unpin one"
            raise Problem(HTTPStatus.CONFLICT, "too_many_pinned", detail)


def _too_long(policy: AppPolicy) -> Problem:
    return invalid_field("content", f"has more than {policy.most_content_chars} characters")


def _no_such_memory() -> Problem:
    return not_found("no such memory: GET /apps/{app_id}/memories lists the existing ones")
