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

_FACTS = Group("memory", "What is remembered of users, and finding it.", prefix="/v1", role=TokenRole.WRITER)
_PATH = "/users/{user_id:path}/facts/{category}/{key}"


class OfFact(OfUser, frozen=True, kw_only=True):
    """A request about one fact of a user; without an app of the token's only one, else of the default app."""

    category: Annotated[events.FactCategory, Meta(description="Kind of the fact.")]
    key: Annotated[events.FactKey, Meta(description="What it is about, in snake case.")]


class CorrectFact(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is to change of a fact; what is not named, or null, stays."""

    rules: ClassVar[Rules] = some_of(*map(given, ("value", "importance", "pinned")))
    value: Annotated[events.FactValue, Meta(pattern=r"\S", description="What is so; a new fact needs it.")] | None = (
        None
    )
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


class SetMode(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the memory is to do from now on."""

    mode: Annotated[
        events.MemoryMode,
        Meta(description="`active` learns and is read; `read_only` is read and learns nothing new; `off` neither."),
    ]


class ModeAnswer(Struct, frozen=True, kw_only=True):
    """What became of it."""

    mode: events.MemoryMode
    changed: bool
    """Whether the user's memory had another mode before."""
    pending: bool
    """Whether a part of it is in the log and not carried out yet."""


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
        """Write a fact of a user, put it right, pin it or let it go.

        What was said before does not undo it, whoever understands it later; what the user says afterwards does, unless
        the fact is pinned: then it stands in the fact's history.
        """
        if body == CorrectFact():
            raise invalid_field("", "nothing is to change: name value, importance or pinned")
        result = await self._done(asked, events.FactEdited, begins=body.value is not None, **structs.asdict(body))
        if result is None or result.outcome == "not_found":
            raise not_found("the user has no such fact that holds: give a `value` to write one")
        if result.outcome == "too_many_pinned":
            detail = "half of the facts that a user may have are pinned already: let one go"
            raise Problem(HTTPStatus.CONFLICT, "too_many_pinned", detail)
        return CorrectedFact(success=True, fact=await self._shown(asked) if caller().text else None)

    @_FACTS.delete(_PATH, "delete_user_fact", audits="acted")
    async def delete(self, asked: OfFact) -> DeletedFact | Accepted[PendingDeed]:
        """End a fact of a user, pinned or not. One that does not hold is no error, and said so.

        Its value stays in its history; `POST /v1/erase` removes it for good.
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
        hint = "the command is in the log and will be carried out, once: look again; does the role memory run?"
        raise NotSeenYet(Accepted(PendingDeed(success=False, pending=True, request_id=command.request_id, hint=hint)))

    @_FACTS.put("/users/{user_id:path}/mode", "set_memory_mode", audits="acted")
    async def set_mode(self, asked: OfUser, body: SetMode) -> ModeAnswer:
        """Switch a user's memory in an app: `active` (as it begins), `read_only` or `off`.

        What was remembered stays: `POST /v1/erase` removes it.
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
