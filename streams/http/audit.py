"""Audit of requests that read text or change something, written to `audit.v1` in batches.

A route declares its kind by `audits` (`streams.http.route`), a tool by `note_tool`. The subject of the request (ids)
and the number of returned items come from its path, query, body and response; `Auditing` makes the record when the
response begins. A record never has text, queries or tokens. The record of an `anonymous` route has no subject: the
request and the proof of an erasure are its record.

A response waits for its record only with `http.audit_required`. Lost records are counted and logged
(`audit_records_total`, result `lost`). The number of waiting records is bounded, so an unavailable log takes no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.errors import DeliveryFailed
from models.events import AccessAudited, Output
from models.events.topics import AUDIT
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.http.problems import forbidden, unavailable
from streams.http.route import Audited
from streams.http.security import Caller, asking, caller
from streams.kafka.producer import ProducerOnDemand, Record
from streams.observe.telemetry import metrics
from streams.settings import Settings

log = structlog.get_logger(__name__)

WRITE_AFTER_S = 0.5
"""Longest time that a record waits for a batch."""
MOST_WAITING = 10_000
"""Maximum number of waiting records; further ones are lost and counted."""
MOST_AT_ONCE = 1_000
WRITTEN_WITHIN_S = 5.0
"""Longest time that a response waits for its record, or a stopping role for the remaining ones."""


class _Waiting(NamedTuple):
    event: AccessAudited
    written: asyncio.Future[None] | None
    """Set if a response waits for it."""


WriteAll = Callable[[Sequence[AccessAudited]], Awaitable[None]]
"""Writes records; raises `DeliveryFailed`."""


class BatchedAudit:
    """Queue of audit records, written in batches.

    Args:
        write_all: Writes a batch.
        required: Whether a response with text must wait until its record is written.
    """

    def __init__(self, write_all: WriteAll, *, required: bool) -> None:
        self.required = required
        self._write_all = write_all
        self._waiting: list[_Waiting] = []
        self._at_once = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def record(self, event: AccessAudited) -> None:
        """Queue a record; its batch is sent within `WRITE_AFTER_S`."""
        if len(self._waiting) >= MOST_WAITING:
            _count("lost", 1)
            return
        self._take(_Waiting(event, None))

    async def write(self, event: AccessAudited) -> None:
        """Write a record now, with all queued ones.

        Raises:
            DeliveryFailed: It was not written, or not within `WRITTEN_WITHIN_S`.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise DeliveryFailed(f"{MOST_WAITING} audit records wait for the log, the maximum")
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._take(_Waiting(event, written))
        self._at_once.set()
        try:
            await asyncio.wait_for(written, WRITTEN_WITHIN_S)
        except TimeoutError as error:
            raise DeliveryFailed(f"the audit record was not acknowledged within {WRITTEN_WITHIN_S:g} s") from error

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Context while requests are served; on exit, queued records are written, for at most `WRITTEN_WITHIN_S`."""
        _count("lost", 0)  # there from the start: a series that begins at 1 has not risen for Prometheus
        try:
            yield
        finally:
            self._at_once.set()
            if self._writing is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._writing, WRITTEN_WITHIN_S)
            self._at_once.clear()
            if self._waiting:
                self._lose(self._waiting, "the role ended")
                self._waiting = []

    def _take(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        if len(self._waiting) >= MOST_AT_ONCE:
            self._at_once.set()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="audit")

    async def _write(self) -> None:
        while self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), WRITE_AFTER_S)
            self._at_once.clear()
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            if self._waiting:
                self._at_once.set()
            await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[_Waiting]) -> None:
        try:
            await self._write_all([each.event for each in batch])
        except DeliveryFailed as error:
            self._lose(batch, str(error))
        except BaseException:
            self._lose(batch, "the writer failed or was ended")
            raise
        else:
            _count("written", len(batch))
            for each in batch:
                if each.written is not None and not each.written.done():
                    each.written.set_result(None)

    def _lose(self, batch: Sequence[_Waiting], reason: str) -> None:
        _count("lost", len(batch))
        log.error("audit_records_lost", records=len(batch), reason=reason)
        for each in batch:
            if each.written is not None and not each.written.done():
                each.written.set_exception(DeliveryFailed(reason))


class KafkaAudit(BatchedAudit):
    """The audit in `audit.v1`; connects at the first record.

    Args:
        settings: The cluster, the topics' prefix, and whether the audit is required.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(self._to_kafka, required=settings.http.audit_required)
        self._topic = AUDIT.full_name(settings.topic_prefix)
        self._producer = ProducerOnDemand(settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """As `BatchedAudit.running`; disconnects at the end."""
        try:
            async with super().running():
                yield
        finally:
            await self._producer.close()

    async def _to_kafka(self, events: Sequence[AccessAudited]) -> None:
        # All of a batch under the first one's key: their order among each other means nothing.
        records = [Record(event.id.encode(), encode(event), headers_for(event)) for event in events]
        await self._producer.write(self._topic, events[0].id.encode(), records)


def _count(result: str, records: int) -> None:
    metrics.counter("audit_records_total", result=result).inc(records)


_IDS = ("app_id", "session_id", "user_id", "project_id")
_MOST_CHARS = 256


@dataclass(slots=True)
class Noted:
    """Audit data of the current request.

    Attributes:
        kind: Kind of the request; None: not audited.
        route: Template of its route, or the tool's name.
        ids: Ids of its subject, by field name.
        anonymous: Whether the record omits the subject.
        given: Number of returned items; None: not known yet.
        refused: Status that a route would have returned for a refused tool call, whose own status is 200.
    """

    kind: Audited | None = None
    route: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    anonymous: bool = False
    given: int | None = None
    refused: int | None = None


_noted: ContextVar[Noted | None] = ContextVar("noted", default=None)


def begin(route: str, *, anonymous: bool = False) -> None:
    """Record the route of the request.

    Args:
        route: Template of the route.
        anonymous: Whether the record omits the subject of the request.
    """
    if (noted := _noted.get()) is not None:
        noted.route, noted.anonymous = route[:_MOST_CHARS], anonymous


def note(kind: Audited) -> Caller:
    """Record the kind of the request. Does not check the role; the route does.

    Raises:
        Problem: 401 without a caller; 403 the token may not read text.
    """
    found = caller()
    if (noted := _noted.get()) is not None:
        noted.kind = kind
    return require_text() if kind == "text_read" else found


def note_tool(tool: str, kind: Audited, arguments: Mapping[str, Any]) -> None:
    """`begin` and `note` for a tool. Outside of requests (a program with its own store) it does nothing.

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
    """Record the subject of the request.

    Args:
        of: Returns the value of `app_id`, `session_id`, `user_id` or `project_id`; None for none.
    """
    noted = _noted.get()
    if noted is None or noted.anonymous:
        return
    for name in _IDS:
        value = of(name)
        if isinstance(value, str) and value:
            noted.ids[name] = value[:_MOST_CHARS]


def note_given(answer: Any) -> None:
    """Record the number of returned items: of a list, or of all lists of a struct; a single object counts as one.

    Only the first call of a request counts.
    """
    noted = _noted.get()
    if noted is not None and noted.given is None:
        noted.given = _things(answer)


def note_refused(status: HTTPStatus) -> None:
    """Record that a tool call was refused."""
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
    """The caller, if they may read text.

    Raises:
        Problem: 403.
    """
    found = caller()
    if not found.text:
        raise forbidden("this token may not read text (http.tokens, `text`): use one that may", "forbidden_text")
    return found


class Auditing:
    """ASGI middleware behind `RequestGuard`: writes a record of each audited request.

    It writes the record when the response starts, or when the request fails without one, since it may have changed
    something. If the audit is required, responses with text wait until the record is written.

    Args:
        app: The next app.
        log: Destination of records; None: no audit.
    """

    def __init__(self, app: ASGIApp, log: BatchedAudit | None) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and write its record."""
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
                        detail = "reads must be audited (http.audit_required), but the log did not take the record"
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
