"""Facts of a user by hand (written, put right, pinned, deleted), and the mode of a user's memory.

Each is a command in the log, folded in one order with what the user says and what extractors find; who wrote it stands
in the fact and in the audit. A user that nothing is known of is begun by a fact that is written.

The mode says whether the memory learns and is read, is only read, or neither. Its command goes to each place that
remembers the user in the app: the user's memory first, then the user's space of app memories. If the process dies
between both, the caller has no answer and asks again; a repeat changes nothing. Conversations, their risk and the
archive go on as they are; so do memories of projects and of whole apps, which are nobody's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, ClassVar
from uuid import uuid4

from msgspec import Meta, Struct, structs

from models import events
from models.events.fields import Ratio
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.commands import Commands
from streams.api.projects.messages import PendingDeed
from streams.api.users.messages import FactAnswer, OfUser
from streams.http.audit import note_ids
from streams.http.field_rules import Rules, given, some_of
from streams.http.problems import Problem, invalid_field, not_found
from streams.http.route import Accepted, Group, NotSeenYet
from streams.http.security import caller
from streams.index.user_memory import UserMemory
from streams.settings.http import TokenRole

_FACTS = Group("memory", "Memory of users: facts, episodes, turns and search.", prefix="/v1", role=TokenRole.WRITER)
_PATH = "/users/{user_id:path}/facts/{category}/{key}"


class OfFact(OfUser, frozen=True, kw_only=True):
    """A request about one fact of a user; without an app of the token's only one, else of the default app."""

    category: Annotated[events.FactCategory, Meta(description="Category of the fact.")]
    key: Annotated[events.FactKey, Meta(description="Key of the fact in snake case.")]


class CorrectFact(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Changes to a fact. Omitted and null fields stay unchanged."""

    rules: ClassVar[Rules] = some_of(*map(given, ("value", "importance", "pinned")))
    value: Annotated[events.FactValue, Meta(pattern=r"\S", description="New value; needed for a new fact.")] | None = (
        None
    )
    importance: Ratio | None = None
    pinned: Annotated[bool, Meta(description="Whether later messages cannot replace it.")] | None = None


class CorrectedFact(Struct, frozen=True, kw_only=True):
    """Result of changing a fact: its new state."""

    success: bool
    fact: FactAnswer | None
    """Null for a token that may not read text."""


class DeletedFact(Struct, frozen=True, kw_only=True):
    """Result of ending a fact. Its value stays in its history until it is erased."""

    success: bool
    deleted_count: int
    already_gone: bool


class SetMode(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """New mode of a user's memory."""

    mode: Annotated[
        events.MemoryMode,
        Meta(description="`active`: learns and is read; `read_only`: is read, learns nothing new; `off`: neither."),
    ]


class ModeAnswer(Struct, frozen=True, kw_only=True):
    """Result of setting the mode."""

    mode: events.MemoryMode
    changed: bool
    """Whether the user's memory had another mode before."""
    pending: bool
    """Whether a part of the change is accepted, but not carried out yet."""


@dataclass(frozen=True)
class FactRoutes:
    """Routes that change facts, and the mode of a user's memory.

    Args:
        users: Where what they changed shows.
        commands: Carries out those to users' memory.
        spaces: Likewise to memories of apps.
        now: The clock of commands.
    """

    users: UserMemory
    commands: Commands[events.UserDeed, events.CommandResult]
    spaces: Commands[events.AdminCommand, events.CommandResult]
    now: Callable[[], datetime] = now_utc

    @_FACTS.put(_PATH, "correct_user_fact", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def correct(self, asked: OfFact, body: CorrectFact) -> CorrectedFact | Accepted[PendingDeed]:
        """Add or correct a fact of a user, pin or unpin it.

        Earlier messages do not replace it, even if facts are extracted from them later. Later messages do, unless the
        fact is pinned: then their value is only added to its history.
        """
        if body == CorrectFact():
            raise invalid_field("", "has no change: give value, importance or pinned")
        result = await self._done(asked, events.FactEdited, begins=body.value is not None, **structs.asdict(body))
        if result is None or result.outcome == "not_found":
            raise not_found("the user has no such active fact: give `value` to add one")
        if result.outcome == "too_many_pinned":
            detail = "half of the maximum number of facts are pinned, and no more can be: unpin one"
            raise Problem(HTTPStatus.CONFLICT, "too_many_pinned", detail)
        return CorrectedFact(success=True, fact=await self._shown(asked) if caller().text else None)

    @_FACTS.delete(_PATH, "delete_user_fact", audits="acted")
    async def delete(self, asked: OfFact) -> DeletedFact | Accepted[PendingDeed]:
        """End a fact of a user, pinned or not. Ending an inactive fact succeeds with `already_gone`.

        Its value stays in its history. Use `POST /v1/erase` to delete it permanently.
        """
        result = await self._done(asked, events.FactDeleted, begins=False)
        gone = result is None or result.outcome == "not_found"
        return DeletedFact(success=True, deleted_count=int(not gone), already_gone=gone)

    async def _done(
        self, asked: OfFact, kind: type[events.FactCommand], *, begins: bool, **fields: Any
    ) -> events.CommandResult | None:
        """What came of a command; None: nothing is known of the user, and nothing is begun."""
        if not begins and await self.users.stats(app_of(asked), asked.user_id) is None:
            return None
        command: events.FactCommand = kind(**self._about(asked), category=asked.category, key=asked.key, **fields)
        result = await self.commands.carry_out(command)
        if result is not None:
            return result
        hint = "the command is in the log and will be carried out once. If it does not show, check the role memory"
        raise NotSeenYet(Accepted(PendingDeed(success=False, pending=True, request_id=command.request_id, hint=hint)))

    @_FACTS.put("/users/{user_id:path}/mode", "set_memory_mode", audits="acted")
    async def set_mode(self, asked: OfUser, body: SetMode) -> ModeAnswer:
        """Set the mode of a user's memory in an app: `active` (default), `read_only` or `off`.

        Existing memory is kept. Use `POST /v1/erase` to delete it.
        """
        user = await self.commands.carry_out(events.MemoryModeSet(**self._about(asked), mode=body.mode))
        space = await self.spaces.carry_out(events.SpaceModeSet(**self._about(asked), mode=body.mode))
        changed = user is not None and user.outcome == "done"
        return ModeAnswer(mode=body.mode, changed=changed, pending=user is None or space is None)

    def _about(self, asked: OfUser) -> dict[str, Any]:
        """What every command to the user's memory begins with."""
        return {
            "app_id": app_of(asked),
            "user_id": asked.user_id,
            "timestamp": self.now(),
            "request_id": uuid4().hex,
            "by": caller().name,
        }

    async def _shown(self, asked: OfFact) -> FactAnswer | None:
        found = await self.users.facts(app_of(asked), asked.user_id, category=asked.category)
        return next((answered(FactAnswer, each) for each in found if each.key == asked.key), None)


def app_of(asked: OfUser) -> str:
    """App of a user whose memory is to change; the audit notes it.

    Raises:
        Problem: 403, another tenant's app.
    """
    app_id = caller().app_meant(asked.app_id)
    note_ids({"app_id": app_id}.get)
    return app_id
