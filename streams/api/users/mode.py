"""The mode of a user's memory: whether it learns and is read, is only read, or neither.

The command goes to each place that remembers the user in the app: the user's memory first, then the user's space of app
memories. If the process dies between both, the caller has no answer and asks again; a repeat changes nothing.
Conversations, their risk and the archive go on as they are; so do memories of projects and of whole apps, which are
nobody's own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

from msgspec import Meta, Struct

from models.events.app import AdminCommand, SpaceModeSet
from models.events.base import CommandResult
from models.events.user import MemoryMode, MemoryModeSet, UserDeed
from streams.api.apps.messages import now_utc
from streams.api.commands import Commands
from streams.api.users.facts import app_of
from streams.api.users.messages import OfUser
from streams.http.route import Group
from streams.http.security import caller
from streams.settings.http import TokenRole

_MODE = Group("memory", "What is remembered of users, and finding it.", prefix="/v1", role=TokenRole.WRITER)


class SetMode(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the memory is to do from now on."""

    mode: Annotated[
        MemoryMode,
        Meta(description="`active` learns and is read; `read_only` is read and learns nothing new; `off` neither."),
    ]


class ModeAnswer(Struct, frozen=True, kw_only=True):
    """What became of it."""

    mode: MemoryMode
    changed: bool
    """Whether the user's memory had another mode before."""
    pending: bool
    """Whether a part of it is in the log and not carried out yet."""


class ModeRoutes:
    """The route that sets the mode.

    Args:
        users: Carries out commands to users' memory.
        spaces: Likewise to memories of apps.
        now: The clock of commands.
    """

    def __init__(
        self,
        users: Commands[UserDeed, CommandResult],
        spaces: Commands[AdminCommand, CommandResult],
        *,
        now: Callable[[], datetime] = now_utc,
    ) -> None:
        self._users = users
        self._spaces = spaces
        self._now = now

    @_MODE.put("/users/{user_id:path}/mode", "set_memory_mode", audits="acted")
    async def set_mode(self, asked: OfUser, body: SetMode) -> ModeAnswer:
        """Switch a user's memory in an app: `active` (as it begins), `read_only` or `off`.

        What was remembered stays: `POST /v1/erase` removes it.

        Raises:
            Problem: 403 another tenant's app; 503 this role takes no commands.
        """
        ids: dict[str, Any] = {
            "app_id": app_of(asked),
            "user_id": asked.user_id,
            "timestamp": self._now(),
            "by": caller().name,
        }
        user = await self._users.carry_out(MemoryModeSet(**ids, mode=body.mode, request_id=uuid4().hex))
        space = await self._spaces.carry_out(SpaceModeSet(**ids, mode=body.mode, request_id=uuid4().hex))
        changed = user is not None and user.outcome == "done"
        return ModeAnswer(mode=body.mode, changed=changed, pending=user is None or space is None)
