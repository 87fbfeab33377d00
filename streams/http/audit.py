"""Notes of requests that read what was said, or change something.

A route declares what it is by `audits` (`streams.http.route`), a tool says it by `note_tool`. What the request was
about (ids) and how much was given comes from its path, query, body and answer; `Auditing` makes the record of it when
the answer begins, and hands it to `streams.http.audit_log`. Never noted: text, queries, tokens. A
record of an `anonymous` route names nobody: an erasure's own request and proof are the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.errors import DeliveryFailed
from models.events import AccessAudited, Output
from streams.http.audit_log import BatchedAudit
from streams.http.problems import forbidden, unavailable
from streams.http.route import Audited
from streams.http.security import Caller, asking, caller

_IDS = ("app_id", "session_id", "user_id", "project_id")
_MOST_CHARS = 256


@dataclass(slots=True)
class Noted:
    """What is known of the request that is being answered.

    Attributes:
        kind: What it is; None: nothing that is audited.
        route: Template of its route, or the tool's name.
        ids: Whom it is about, by name of the field.
        anonymous: Whether it is not said whom it is about.
        given: How many things are in its answer; None: not known yet.
        refused: Status that a route would have answered with, of a tool: its answer is 200 all the same.
    """

    kind: Audited | None = None
    route: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    anonymous: bool = False
    given: int | None = None
    refused: int | None = None


_noted: ContextVar[Noted | None] = ContextVar("noted", default=None)


def begin(route: str, *, anonymous: bool = False) -> None:
    """Note which route is asked, as it is declared.

    Args:
        route: Its template.
        anonymous: Whether it is not to be said whom the request is about.
    """
    if (noted := _noted.get()) is not None:
        noted.route, noted.anonymous = route[:_MOST_CHARS], anonymous


def note(kind: Audited) -> Caller:
    """Note what the request is; who may act is the route's own matter.

    Raises:
        Problem: 401 nobody was let in; 403 the token may not read text.
    """
    found = caller()
    if (noted := _noted.get()) is not None:
        noted.kind = kind
    return require_text() if kind == "text_read" else found


def note_tool(tool: str, kind: Audited, arguments: Mapping[str, Any]) -> None:
    """Of a tool: as `begin` and `note`. Outside of requests (a program that holds the store) nothing is noted.

    Raises:
        Problem: 403, the token may not read text.
    """
    if asking() is None:
        return
    noted = _noted.get()
    if noted is not None:
        noted.kind, noted.route = kind, f"/mcp {tool}"
        note_ids(arguments.get)
    if kind == "text_read":
        require_text()


def note_ids(of: Callable[[str], Any]) -> None:
    """Note whom the request is about.

    Args:
        of: Gives the value of `app_id`, `session_id`, `user_id` or `project_id`; None for none.
    """
    noted = _noted.get()
    if noted is None or noted.anonymous:
        return
    for name in _IDS:
        value = of(name)
        if isinstance(value, str) and value:
            noted.ids[name] = value[:_MOST_CHARS]


def note_given(answer: Any) -> None:
    """Note how much an answer gives: the items of a list, or of the lists of a message; a single thing is one.

    The first to say it knows best.
    """
    noted = _noted.get()
    if noted is not None and noted.given is None:
        noted.given = _things(answer)


def note_refused(status: HTTPStatus) -> None:
    """Note that a tool gave and did nothing."""
    noted = _noted.get()
    if noted is not None:
        noted.refused = status.value


def _things(answer: Any) -> int:
    if isinstance(answer, list | tuple):
        return len(answer)
    if isinstance(answer, Output):
        return 1  # whatever lists it has
    names: tuple[str, ...] = getattr(answer, "__struct_fields__", ())
    lists = [value for name in names if isinstance(value := getattr(answer, name), list | dict)]
    return sum(map(len, lists)) or 1


def require_text() -> Caller:
    """Whoever asks, if they may read what was said.

    Raises:
        Problem: 403.
    """
    found = caller()
    if not found.text:
        raise forbidden("this token may not read what was said (http.tokens, text)", "forbidden_text")
    return found


class Auditing:
    """ASGI middleware, behind `RequestGuard`: has a record made of each request that a route or tool noted.

    The record is made when the head of the answer goes out, or when there will be none: what failed half-way may have
    changed something. If the audit is required, words wait until the record is written.

    Args:
        app: What stands behind.
        log: Where records go; None: nowhere.
    """

    def __init__(self, app: ASGIApp, log: BatchedAudit | None) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and note it."""
        if scope["type"] != "http" or self._log is None:
            await self._app(scope, receive, send)
            return
        log, noted = self._log, Noted()
        began = refused = False

        async def noting(message: Message) -> None:
            nonlocal began, refused
            began = True
            if message["type"] == "http.response.start" and noted.kind is not None:
                event = self._event(noted, scope, noted.refused or message["status"])
                if log.required and noted.kind == "text_read" and event.status < HTTPStatus.BAD_REQUEST:
                    try:
                        await log.write(event)
                    except DeliveryFailed:
                        refused = True
                        detail = "what is read must be on record (http.audit_required), and the log does not take it"
                        await unavailable(detail, code="audit_unavailable").response()(scope, receive, send)
                else:
                    log.record(event)
            if not refused:
                await send(message)

        token = _noted.set(noted)
        try:
            await self._app(scope, receive, noting)
        except BaseException as error:
            if noted.kind is not None and not began:
                # A request is cancelled when its time is over.
                cancelled = isinstance(error, asyncio.CancelledError)
                status = HTTPStatus.GATEWAY_TIMEOUT if cancelled else HTTPStatus.INTERNAL_SERVER_ERROR
                log.record(self._event(noted, scope, status))
            raise
        finally:
            _noted.reset(token)

    def _event(self, noted: Noted, scope: Scope, status: int) -> AccessAudited:
        asked_by, ids = asking(), noted.ids
        if ids and asked_by is not None and asked_by.apps is not None and len(asked_by.apps) == 1:
            ids = {"app_id": next(iter(asked_by.apps)), **ids}  # ids are of an app: a token's only one goes unsaid
        return AccessAudited(
            id=uuid4().hex,
            timestamp=datetime.now(UTC),
            kind=noted.kind or "acted",
            by=asked_by.name if asked_by is not None else "",
            method=scope["method"][:16],
            route=noted.route,
            status=status,
            given=(noted.given or 0) if status < HTTPStatus.BAD_REQUEST else 0,
            **ids,
        )
