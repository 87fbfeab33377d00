"""Namespace of a request to app memory, and the fields that every command to it has."""

from __future__ import annotations

from collections.abc import Sized
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote
from uuid import uuid4

from msgspec import Meta, Struct

from models.events.app import MemoriesRead
from models.events.fields import Identifier, printable
from streams.api.apps.messages import Pending
from streams.http.route import Accepted
from streams.http.security import caller

_How = Literal["list", "one", "search", "export"]


class OfSpace(Struct, frozen=True, kw_only=True):
    """A request about a space of memories."""

    app_id: Annotated[Identifier, Meta(description="URL-encoded; any character.")]
    user_id: Annotated[
        str, printable(0, 256), Meta(description="The space of this user in the app; none: the app's own.")
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

    def pending(self, request_id: str) -> Accepted[Pending]:
        """202: it is written, and will be seen."""
        result = Pending(
            success=False,
            pending=True,
            request_id=request_id,
            hint="the command is in the log and will be carried out, once: look again at the Location; is the role "
            "memory running, and the role index?",
        )
        place = f"/apps/{quote(self.app_id, safe='')}/memories"
        if self.user_id:
            place += f"?user_id={quote(self.user_id, safe='')}"
        return Accepted(result, {"Location": place})
