"""Facts of a user by hand: written, put right, pinned, deleted.

Each is a command in the log, folded in one order with what the user says and what extractors find; who wrote it stands
in the fact and in the audit. A user that nothing is known of is begun by a fact that is written.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, ClassVar
from uuid import uuid4

from msgspec import Meta, Struct, structs

from models.events.base import CommandResult
from models.events.fields import Ratio
from models.events.user import FactCategory, FactCommand, FactDeleted, FactEdited, FactKey, FactValue, UserDeed
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.commands import Commands
from streams.api.projects.messages import PendingDeed
from streams.api.users.messages import FactAnswer, OfUser
from streams.http.audit import note_ids
from streams.http.field_rules import Rules, given, some_of
from streams.http.problems import Problem, invalid_field
from streams.http.route import Accepted, Group
from streams.http.security import caller
from streams.index.user_memory import UserMemory
from streams.settings.http import TokenRole

_FACTS = Group("memory", "What is remembered of users, and finding it.", prefix="/v1", role=TokenRole.WRITER)
_PATH = "/users/{user_id:path}/facts/{category}/{key}"


class OfFact(OfUser, frozen=True, kw_only=True):
    """A request about one fact of a user; without an app of the token's only one, else of the default app."""

    category: Annotated[FactCategory, Meta(description="Kind of the fact.")]
    key: Annotated[FactKey, Meta(description="What it is about, in snake case.")]


class CorrectFact(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is to change of a fact; what is not named, or null, stays."""

    rules: ClassVar[Rules] = some_of(*map(given, ("value", "importance", "pinned")))
    value: Annotated[FactValue, Meta(pattern=r"\S", description="What is so; a new fact needs it.")] | None = None
    importance: Ratio | None = None
    pinned: Annotated[bool, Meta(description="Nothing that is said replaces a pinned fact.")] | None = None


class CorrectedFact(Struct, frozen=True, kw_only=True):
    """A fact as it is now."""

    success: bool
    fact: FactAnswer | None
    """Null for a token that may not read text."""


class DeletedFact(Struct, frozen=True, kw_only=True):
    """A fact holds no longer; its value stays in its history until it is erased."""

    success: bool
    deleted_count: int
    already_gone: bool


class FactRoutes:
    """Routes that change facts.

    Args:
        users: Where what they changed shows.
        commands: Carries them out.
        now: The clock of commands.
    """

    def __init__(
        self,
        users: UserMemory,
        commands: Commands[UserDeed, CommandResult],
        *,
        now: Callable[[], datetime] = now_utc,
    ) -> None:
        self._users = users
        self._commands = commands
        self._now = now

    @_FACTS.put(_PATH, "correct_user_fact", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def correct(self, asked: OfFact, body: CorrectFact) -> CorrectedFact | Accepted[PendingDeed]:
        """Write a fact of a user, put it right, pin it or let it go.

        What was said before does not undo it, whoever understands it later; what the user says afterwards does, unless
        the fact is pinned: then it stands in the fact's history.
        """
        if body == CorrectFact():
            raise invalid_field("", "nothing is to change: name value, importance or pinned")
        result = await self._done(asked, FactEdited, begins=body.value is not None, **structs.asdict(body))
        if isinstance(result, Accepted):
            return result
        if result is None or result.outcome == "not_found":
            detail = "the user has no such fact that holds: give a `value` to write one"
            raise Problem(HTTPStatus.NOT_FOUND, "not_found", detail)
        if result.outcome == "too_many_pinned":
            detail = "half of the facts that a user may have are pinned already: let one go"
            raise Problem(HTTPStatus.CONFLICT, "too_many_pinned", detail)
        return CorrectedFact(success=True, fact=await self._shown(asked) if caller().text else None)

    @_FACTS.delete(_PATH, "delete_user_fact", audits="acted")
    async def delete(self, asked: OfFact) -> DeletedFact | Accepted[PendingDeed]:
        """End a fact of a user, pinned or not. One that does not hold is no error, and said so.

        Its value stays in its history; `POST /v1/erase` removes it for good.
        """
        result = await self._done(asked, FactDeleted, begins=False)
        if isinstance(result, Accepted):
            return result
        gone = result is None or result.outcome == "not_found"
        return DeletedFact(success=True, deleted_count=int(not gone), already_gone=gone)

    async def _done(
        self, asked: OfFact, kind: type[FactCommand], *, begins: bool, **fields: Any
    ) -> CommandResult | Accepted[PendingDeed] | None:
        """What came of a command; None: nothing is known of the user, and nothing is begun."""
        app_id = app_of(asked)
        if not begins and await self._users.stats(app_id, asked.user_id) is None:
            return None
        command: FactCommand = kind(
            app_id=app_id,
            user_id=asked.user_id,
            timestamp=self._now(),
            category=asked.category,
            key=asked.key,
            request_id=uuid4().hex,
            by=caller().name,
            **fields,
        )
        result = await self._commands.carry_out(command)
        if result is not None:
            return result
        hint = "the command is in the log and will be carried out, once: look again; does the role memory run?"
        return Accepted(PendingDeed(success=False, pending=True, request_id=command.request_id, hint=hint))

    async def _shown(self, asked: OfFact) -> FactAnswer | None:
        found = await self._users.facts(app_of(asked), asked.user_id, category=asked.category)
        return next((answered(FactAnswer, each) for each in found if each.key == asked.key), None)


def app_of(asked: OfUser) -> str:
    """App of a user whose memory is to change; the audit notes it.

    Raises:
        Problem: 403, another tenant's app.
    """
    app_id = caller().app_meant(asked.app_id)
    note_ids({"app_id": app_id}.get)
    return app_id
