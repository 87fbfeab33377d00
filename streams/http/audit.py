"""Notes of requests that read what was said, or change something.

A route declares what it is by `audits` (`streams.http.route`), a tool says it by `note_tool`. What the request was
about (ids) and how much was given comes from its path, query, body and answer; `Auditing` makes the record of it when
the answer begins, and hands it to `streams.http.audit`. Never noted: text, queries, tokens. A
record of an `anonymous` route names nobody: an erasure's own request and proof are the record.

Records of the audit, written to `audit.v1` in batches.

An answer waits for its record only where `http.audit_required` says so. What cannot be written is counted and logged
(`audit_records_total`, result `lost`), and what waits is bounded: a log that is away takes no memory.
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
"""Longest that a record waits for others."""
MOST_WAITING = 10_000
"""Records that wait while the log does not answer; further ones are lost, and counted."""
MOST_AT_ONCE = 1_000
WRITTEN_WITHIN_S = 5.0
"""How long an answer waits for its record, and the end of a role for those that are left."""


class _Waiting(NamedTuple):
    event: AccessAudited
    written: asyncio.Future[None] | None
    """Somebody waits for it."""


WriteAll = Callable[[Sequence[AccessAudited]], Awaitable[None]]
"""Writes records; raises `DeliveryFailed`."""


class BatchedAudit:
    """Records of the audit on their way to whatever writes them.

    Args:
        write_all: Writes a batch.
        required: Whether words are given only when their reading is on record.
    """

    def __init__(self, write_all: WriteAll, *, required: bool) -> None:
        self.required = required
        self._write_all = write_all
        self._waiting: list[_Waiting] = []
        self._at_once = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def record(self, event: AccessAudited) -> None:
        """Take a record; within `WRITE_AFTER_S` it is on its way."""
        if len(self._waiting) >= MOST_WAITING:
            _count("lost", 1)
            return
        self._take(_Waiting(event, None))

    async def write(self, event: AccessAudited) -> None:
        """Write a record now, with those that wait.

        Raises:
            DeliveryFailed: It is not on record, or not within `WRITTEN_WITHIN_S`.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise DeliveryFailed(f"{MOST_WAITING} records of the audit wait for the log already")
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._take(_Waiting(event, written))
        self._at_once.set()
        try:
            await asyncio.wait_for(written, WRITTEN_WITHIN_S)
        except TimeoutError as error:
            raise DeliveryFailed(f"no record of the audit was acknowledged within {WRITTEN_WITHIN_S:g} s") from error

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open while requests are answered; on leaving, what waits is written, for at most `WRITTEN_WITHIN_S`."""
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
    """The audit in `audit.v1`; connects when the first record comes.

    Args:
        settings: The cluster, the topics' prefix, and whether the audit is required.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(self._to_kafka, required=settings.http.audit_required)
        self._topic = AUDIT.full_name(settings.topic_prefix)
        self._producer = ProducerOnDemand(settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """As of every `BatchedAudit`, and disconnects at the end."""
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
