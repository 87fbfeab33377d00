"""Namespace of a request to app memory, and the fields that every command to it has."""

from __future__ import annotations

from collections.abc import Sized
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import quote
from uuid import uuid4

from fastapi import Path, Query
from fastapi.responses import Response

from models.events.app import MemoriesRead
from streams.api.apps import examples
from streams.api.apps.messages import Pending
from streams.http.bodies import json_answer
from streams.http.problems import invalid_field
from streams.http.security import caller

_How = Literal["list", "one", "search", "export"]
AppIdInPath = Annotated[
    str,
    Path(min_length=1, max_length=256, description="URL-encoded; any character.", examples=[examples.APP_ID]),
]
UserIdInQuery = Annotated[
    str,
    Query(max_length=256, description="The space of this user in the app; none: the app's own.", examples=["user-17"]),
]


class AskedSpace:
    """The space of memories that a request is about.

    Raises:
        Problem: 403 another tenant's app; 422 a name that no event can have.
    """

    def __init__(self, app_id: str, user_id: str = "") -> None:
        asked_by = caller()
        asked_by.app_of(app_id)
        for field, name in (("app_id", app_id), ("user_id", user_id)):
            if not name.isprintable():
                raise invalid_field(field, "holds control characters")
        self.app_id, self.user_id, self._by = app_id, user_id, asked_by.name

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

    def pending(self, request_id: str) -> Response:
        """202: it is written, and will be seen."""
        told = Pending(
            success=False,
            pending=True,
            request_id=request_id,
            hint="the command is in the log and will be carried out, once: look again at the Location; is the role "
            "memory running, and the role index?",
        )
        place = f"/apps/{quote(self.app_id, safe='')}/memories"
        if self.user_id:
            place += f"?user_id={quote(self.user_id, safe='')}"
        return json_answer(told, status=HTTPStatus.ACCEPTED, headers={"Location": place})
